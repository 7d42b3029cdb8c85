import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { at, brief } from "~/protocol/json";
import type { CallRow, Entry, SessionRow } from "~/protocol/schema";
import { newestEvents } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { KeyValues } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { JsonView } from "~/widgets/json-view";
import { counted } from "~/words/text";
import { callsOf } from "./clients";
import styles from "./report.module.css";

/** What is known of one client. */
interface Evidence {
  row: SessionRow;
  /** Its calls that the page knows; `more` where it made more than these. */
  calls: readonly CallRow[];
  more?: boolean;
  /** How many streams it resumed; null while that is unknown. */
  resumed: number | null;
}

interface Feature {
  name: string;
  /** How often it was exercised; null: unknown. */
  count: (evidence: Evidence) => number | null;
  /** The tools that exercise it. */
  tools: readonly string[];
  /** What to do where no tool does it, or beside the call. */
  how?: string;
  /** Set where only one era has it; with `piped`, both have it on connections that carry everything. */
  era?: "legacy" | "modern";
  piped?: boolean;
  /** The client capability that it needs: a path of names. */
  needs?: readonly string[];
}

const asked =
  (...methods: readonly string[]) =>
  ({ row }: Evidence) =>
    methods.reduce((sum, method) => sum + (row.methods[method] ?? 0), 0);

const called =
  (...tools: readonly string[]) =>
  ({ row }: Evidence) =>
    tools.reduce((sum, tool) => sum + (row.tools[tool] ?? 0), 0);

const callsWith =
  (matches: (call: CallRow) => boolean) =>
  ({ calls: all, more = false }: Evidence) =>
    all.filter(matches).length || (more ? null : 0);

const byTool = (name: string, tools: readonly string[], more: Partial<Feature> = {}): Feature => ({
  name,
  count: called(...tools),
  tools,
  ...more,
});

const byMethod = (name: string, methods: readonly string[], how: string, more: Partial<Feature> = {}): Feature => ({
  name,
  count: asked(...methods),
  tools: [],
  how,
  ...more,
});

const DRAFT = { era: "legacy", needs: ["experimental", "streams"] } as const;

const FORMS = ["elicit_form", "elicit_simple_form", "pausable_task"];

/** What a client can exercise here, in the order in which one would try it. */
const FEATURES: readonly Feature[] = [
  byMethod("Discovery", ["server/discover"], "send server/discover", { era: "modern" }),
  byMethod("Tools listed", ["tools/list"], "list the tools"),
  { name: "Tools called", count: asked("tools/call"), tools: ["simple_tool"] },
  { name: "Progress: token sent", count: callsWith((call) => call.progress_token !== null), tools: ["progress", "sync_with_progress"], how: "with a progressToken" },
  { name: "Cancelled by notification", count: callsWith((call) => call.cancelled_by === "notification"), tools: ["progress"], how: "then send notifications/cancelled", era: "legacy", piped: true },
  { name: "Cancelled by closing", count: callsWith((call) => call.cancelled_by === "disconnect"), tools: ["progress"], how: "then close the response, or the connection that carries everything", era: "modern", piped: true },
  { name: "Tasks created", count: callsWith((call) => call.task !== null), tools: ["pure_task", "task_with_progress"], how: "as a task" },
  byMethod("Tasks followed", ["tasks/get", "tasks/result", "tasks/list"], "ask for the task with tasks/get"),
  { name: "Tasks cancelled", count: asked("tasks/cancel"), tools: ["cancellable_task"], how: "then send tasks/cancel" },
  byTool("Elicitation: form", FORMS, { needs: ["elicitation"] }),
  byTool("Elicitation: URL", ["elicit_url"], { needs: ["elicitation", "url"] }),
  byTool("Sampling", ["sampling_demo"], { needs: ["sampling"] }),
  byTool("Roots", ["list_roots"], { needs: ["roots"] }),
  byTool("Several questions at once", ["ask_several"]),
  { name: "Streams resumed", count: ({ resumed }) => resumed, tools: ["progress"], how: "then cut the connection and GET with Last-Event-ID, or send stream/resume", era: "legacy" },
  byMethod("Draft streams resumed", ["stream/resume"], "cut the connection during a call, then send stream/resume", DRAFT),
  byMethod("Draft streams polled", ["stream/poll", "stream/poll/all"], "send stream/poll for the stream of a call", DRAFT),
  byMethod("Subscriptions", ["resources/subscribe", "subscriptions/listen"], "subscribe to probe://clock"),
  byMethod("Log level set", ["logging/setLevel"], "send logging/setLevel", { era: "legacy" }),
  byTool("Log messages", ["log_levels"]),
  byTool("List changes", ["announce_list_change"]),
  byMethod("Resources read", ["resources/read"], "read probe://text"),
  byMethod("Skills listed", ["skills/list", "skills/get"], "list the skills at ?tools=skills", { era: "modern" }),
  { name: "Skills read", count: ({ row }) => Object.values(row.skills).reduce((sum, reads) => sum + reads, 0), tools: [], how: "load a skill at ?tools=skills" },
  byMethod("Prompts used", ["prompts/get"], "get a prompt"),
  byMethod("Completion", ["completion/complete"], "complete an argument of a prompt"),
  byTool("Structured output", ["structured_output"]),
  byTool("Content types", ["content_types", "chatty", "long_output"]),
  byTool("Errors", ["fail"]),
  byTool("Hints", ["read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint"]),
  byTool("Mirrored headers", ["routed_tool"], { era: "modern" }),
  byTool("Ping from the server", ["ping_client"], { era: "legacy" }),
];

interface Exercised {
  name: string;
  state: "exercised" | "not yet" | "unknown" | "not in this protocol";
  count: number;
  tools: readonly string[];
  how: string;
  /** Whether the client declared the capability that it needs; null where it needs none. */
  declared: boolean | null;
}

/** What a client has exercised, feature by feature. */
export function exercised(evidence: Evidence): Exercised[] {
  return FEATURES.map(({ name, count, tools, how = "", era, piped = false, needs }) => {
    const seen = count(evidence);
    const declared = needs === undefined ? null : at(evidence.row.capabilities, ...needs) !== undefined;
    const foreign = era !== undefined && era !== evidence.row.era && !(piped && evidence.row.transport !== "http");
    const state = seen ? "exercised" : foreign ? "not in this protocol" : seen === null ? "unknown" : "not yet";
    return { name, state, count: seen ?? 0, tools, how, declared };
  });
}

/** Declared capabilities, one line each: the name, and what is set inside it. */
export function capabilityLines(capabilities: unknown): [name: string, inside: string][] {
  if (typeof capabilities !== "object" || capabilities === null) return [];
  return Object.entries(capabilities).map(([name, value]) => [name, leaves(value).join(", ")]);
}

function leaves(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [value === true ? path : `${path} ${brief(value)}`.trim()];
  const members = Object.entries(value);
  if (members.length === 0) return path === "" ? [] : [path];
  return members.flatMap(([name, member]) => leaves(member, path === "" ? name : `${path}.${name}`));
}

/** How many readers went on with a stream that an earlier one had begun. */
export function countResumed(events: readonly Entry[]): number {
  const read = new Set<string>();
  // readers of which `stream.resumed` tells, and the head of their response as well
  const told = new Set(events.map((event) => (event.kind === "stream.resumed" ? `${event.stream} ${event.exchange}` : "")));
  let resumed = 0;
  for (const event of events) {
    if (event.kind === "stream.resumed") resumed += 1;
    if (event.kind !== "http.response" || event.stream === null || event.content_type !== "text/event-stream") continue;
    if (read.has(event.stream) && !told.has(`${event.stream} ${event.exchange}`)) resumed += 1;
    read.add(event.stream);
  }
  return resumed;
}

// more readers than a session has in an hour of trying
const MOST = 1000;

/** The same for a session, from the event log of the server; null while it is unknown. */
function useResumed(session: string, requests: number): number | null {
  const { data } = useQuery({
    queryKey: ["resumed", session, requests],
    queryFn: ({ signal }) => newestEvents({ session, kind: "http.response,stream.resumed" }, MOST, signal),
    placeholderData: (before, query) => (query?.queryKey[1] === session ? before : undefined),
  });
  // 0 of a part of the log says nothing about the rest
  return useMemo(() => (data === undefined ? null : countResumed(data.events) || (data.complete ? 0 : null)), [data]);
}

/** What the requests of a modern client declare, each for itself. */
interface Declared {
  requests: number;
  /** Everything that any of them declared, as one value. */
  union: Tree;
  /** By its path (`elicitation`, `elicitation.form`), how many requests declared it. */
  counts: ReadonlyMap<string, number>;
  /** Whether these are all of its requests. */
  complete: boolean;
}

interface Tree {
  [name: string]: unknown;
}

const isObject = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value);

/** The declarations in the requests among the entries. */
export function declaredIn(events: readonly Entry[], complete: boolean): Declared {
  const requests = events.filter((entry) => entry.kind === "message.received" && entry.rpc === "request");
  const counts = new Map<string, number>();
  const union: Tree = {};
  for (const entry of requests) {
    const own = "message" in entry ? at(entry.message, "params", "_meta", "io.modelcontextprotocol/clientCapabilities") : undefined;
    if (isObject(own)) take(own, union, counts, "");
  }
  return { requests: requests.length, union, counts, complete };
}

function take(own: Tree, union: Tree, counts: Map<string, number>, path: string): void {
  for (const [name, value] of Object.entries(own)) {
    const here = path === "" ? name : `${path}.${name}`;
    counts.set(here, (counts.get(here) ?? 0) + 1);
    if (!isObject(value)) {
      union[name] = value;
      continue;
    }
    const inside = isObject(union[name]) ? union[name] : {};
    union[name] = inside;
    take(value, inside, counts, here);
  }
}

/** `in 1 of 16 requests`, of each capability with what is inside it; the one that most requests have first. */
export function declaredLines({ requests, counts }: Declared): [name: string, says: string][] {
  const often = (path: string) => `in ${counts.get(path) === requests ? "all" : `${counts.get(path)} of`} ${counted(requests, "request")}`;
  const top = [...counts.keys()].filter((path) => !path.includes(".")).toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  return top.map((name) => {
    const inside = [...counts.keys()].filter((path) => path.startsWith(`${name}.`));
    const parts = inside.map((path) => `${path.slice(name.length + 1)}${counts.get(path) === counts.get(name) ? "" : ` ${often(path)}`}`);
    return [name, `${often(name)}${parts.length === 0 ? "" : `, with ${parts.join(", ")}`}`];
  });
}

/** Whether requests of one client differ in what they declare. */
export function differs({ requests, counts }: Declared): boolean {
  return [...counts.values()].some((count) => count !== requests);
}

// more than these tell nothing new
const REQUESTS = 1000;

/** What the requests of a modern client in the log declare; null for a session, and while it is unknown. */
export function useDeclared({ id, era, requests }: Pick<SessionRow, "id" | "era" | "requests">): Declared | null {
  const { data } = useQuery({
    queryKey: ["declared", id, requests],
    queryFn: ({ signal }) => newestEvents({ session: id, kind: "message.received" }, REQUESTS, signal),
    enabled: era === "modern",
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
  });
  return useMemo(() => (data === undefined ? null : declaredIn(data.events, data.complete)), [data]);
}

interface CapabilitiesProps {
  /** Those of `initialize`, or of the newest request. */
  capabilities: unknown;
  era: "legacy" | "modern";
  /** Of a modern client, where it is known. */
  declared: Declared | null;
}

/** What the client says that it can do: once for a session, else request by request. */
export function Capabilities({ capabilities, era, declared }: CapabilitiesProps) {
  return (
    <section className={`${styles["part"]} column`} aria-label="Declared capabilities">
      {era === "modern" && declared !== null && declared.requests > 0 ? <OfRequests declared={declared} /> : <Once capabilities={capabilities} era={era} />}
    </section>
  );
}

function Once({ capabilities, era }: Pick<CapabilitiesProps, "capabilities" | "era">) {
  const lines = capabilityLines(capabilities);
  const none = era === "legacy" ? "None was declared in initialize: the server may ask this client nothing." : "The newest request declared none.";
  return (
    <>
      {lines.length === 0 ? <p>{none}</p> : <KeyValues items={lines.map(([name, inside]) => [name, inside === "" ? "declared" : inside])} />}
      <JsonView title="Capabilities as declared" value={capabilities} open={0} />
    </>
  );
}

function OfRequests({ declared }: { declared: Declared }) {
  const { requests, union, complete } = declared;
  const lines = declaredLines(declared);
  const which = `${complete ? "" : "newest "}${counted(requests, "request")}`;
  return (
    <>
      {lines.length === 0 ? <p>None of its {which} declared any: the server may ask this client nothing.</p> : <KeyValues items={lines} />}
      {differs(declared) && <p>Its {which} differ: the server may ask the client only what the request at hand declares.</p>}
      <JsonView title="All that was declared" value={union} open={0} />
    </>
  );
}

const COLUMNS: readonly PlainColumn<Exercised>[] = [
  { key: "name", head: "Feature", cell: (feature) => feature.name },
  { key: "state", head: "Exercised", cell: (feature) => <State feature={feature} /> },
  { key: "how", head: "How", cell: (feature) => <How feature={feature} /> },
];

function State({ feature: { state, count, declared } }: { feature: Exercised }) {
  return (
    <>
      {state === "exercised" ? <Badge tone="good">✓ {count}×</Badge> : <Badge>{state}</Badge>}
      {declared !== null && <span className="aside"> {declared ? "declared" : "not declared"}</span>}
    </>
  );
}

function How({ feature: { tools, how } }: { feature: Exercised }) {
  return (
    <>
      {tools.length > 0 && "call "}
      {tools.map((tool, index) => (
        <span key={tool}>
          {index > 0 && ", "}
          <Link href={`/server/help#${tool}`}>{tool}</Link>
        </span>
      ))}{" "}
      {how}
    </>
  );
}

/** What the client has exercised, what not yet, and what to call for it. */
export function Matrix({ row, calls }: { row: SessionRow; calls: readonly CallRow[] }) {
  const resumed = useResumed(row.id, row.requests);
  const more = calls.length < callsOf(row);
  const features = exercised({ row, calls, more, resumed });
  const done = features.filter((feature) => feature.state === "exercised").length;
  const possible = features.filter((feature) => feature.state !== "not in this protocol").length;
  return (
    <>
      <PlainTable caption={`Exercised: ${done} of ${possible} features`} columns={COLUMNS} rows={features} rowKey={(feature) => feature.name} />
      <p className="aside">
        Tried, not verified.
        {more && ` Arguments and cancellations are those of the newest ${calls.length} of ${callsOf(row)} tool calls.`}
      </p>
    </>
  );
}
