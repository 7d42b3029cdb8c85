import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { brief } from "~/protocol/json";
import type { CallRow, Entry, SessionRow } from "~/protocol/schema";
import { newestEvents } from "~/trace/event-pages";

/** What is known of one client. */
export interface Evidence {
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

const calls =
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
  { name: "Progress: token sent", count: calls((call) => call.progress_token !== null), tools: ["progress", "sync_with_progress"], how: "with a progressToken" },
  { name: "Cancelled by notification", count: calls((call) => call.cancelled_by === "notification"), tools: ["progress"], how: "then send notifications/cancelled", era: "legacy", piped: true },
  { name: "Cancelled by closing", count: calls((call) => call.cancelled_by === "disconnect"), tools: ["progress"], how: "then close the response, or the connection that carries everything", era: "modern", piped: true },
  { name: "Tasks created", count: calls((call) => call.task !== null), tools: ["pure_task", "task_with_progress"], how: "as a task" },
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

export interface Exercised {
  name: string;
  state: "exercised" | "not yet" | "unknown" | "not in this protocol";
  count: number;
  tools: readonly string[];
  how: string;
  /** Whether the client declared the capability that it needs; null where it needs none. */
  declared: boolean | null;
}

function has(capabilities: unknown, path: readonly string[]): boolean {
  let at: unknown = capabilities;
  for (const name of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return false;
    at = (at as Record<string, unknown>)[name];
  }
  return true;
}

/** What a client has exercised, feature by feature. */
export function exercised(evidence: Evidence): Exercised[] {
  return FEATURES.map(({ name, count, tools, how = "", era, piped = false, needs }) => {
    const seen = count(evidence);
    const declared = needs === undefined ? null : has(evidence.row.capabilities, needs);
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
export function useResumed(session: string, requests: number): number | null {
  const { data } = useQuery({
    queryKey: ["resumed", session, requests],
    queryFn: ({ signal }) => newestEvents({ session, kind: "http.response,stream.resumed" }, MOST, signal),
    placeholderData: (before, query) => (query?.queryKey[1] === session ? before : undefined),
  });
  // 0 of a part of the log says nothing about the rest
  return useMemo(() => (data === undefined ? null : countResumed(data.events) || (data.complete ? 0 : null)), [data]);
}
