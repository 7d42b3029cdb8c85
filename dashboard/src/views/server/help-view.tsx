import { useQuery } from "@tanstack/react-query";
import { Wrench } from "lucide";
import { Fragment, useEffect } from "react";
import { useParams } from "wouter";
import { DASHBOARD, get, useMcpAddress, useServer } from "~/protocol/client";
import { brief } from "~/protocol/json";
import type { Tool, ToolList } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import { ActionLink, CopyButton } from "~/ui/buttons";
import { SearchField } from "~/ui/fields";
import { Page } from "~/ui/page";
import { CodeBlock, EmptyState, KeyValues } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { useUrlState } from "~/ui/window";
import { ConnectClient } from "~/widgets/connect-client";
import { JsonView } from "~/widgets/json-view";
import { type Argument, argumentsOf, curlExample, messageExample, requiredOf, servedIn } from "./example";
import styles from "./help.module.css";
import { SERVER_TABS } from "./server-view";

/** Goes to the tool that the address names once it is there: `/help#progress`, or `/help/progress`. */
function useAnchor(ready: boolean) {
  const { tool } = useParams<{ tool?: string }>();
  useEffect(() => {
    const go = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)) || (tool ?? ""));
      target?.scrollIntoView({ block: "start" });
      target?.focus({ preventScroll: true });
    };
    if (ready) go();
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, [ready, tool]);
}

/** How to connect a client, what each tool is for, and what the words on these pages mean. */
export default function HelpView() {
  const { data, error } = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get<ToolList>("/tools", {}, signal) });
  const defaults = useServer().data?.toolsets.filter((set) => set.default).map((set) => set.name);
  const address = useMcpAddress();
  const [text, setText] = useUrlState("text");
  useAnchor(data !== undefined);
  const wanted = text.toLowerCase();
  const tools = (data?.tools ?? []).filter((tool) => `${tool.name} ${tool.description} ${tool.exercises} ${tool.shows}`.toLowerCase().includes(wanted));
  return (
    <Page title="Server" part="Help" tabs={SERVER_TABS} scroll tools={<SearchField label="Search tools" value={text} onChange={setText} />}>
      <div className={styles["columns"]}>
        <Contents tools={tools} defaults={defaults ?? []} />
        <div className={styles["text"]}>
          <section aria-labelledby="connect">
            <h2 id="connect">Connect a client</h2>
            <ConnectClient address={address} />
          </section>
          <section aria-labelledby="tools">
            <h2 id="tools">Tools</h2>
            {error !== null && <EmptyState title="The tools could not be loaded">{error.message}</EmptyState>}
            {tools.map((tool) => (
              <ToolDocs key={tool.name} tool={tool} address={address} isDefault={defaults?.includes(tool.toolset) ?? true} />
            ))}
            {data !== undefined && tools.length === 0 && <p>No tool is about “{text}”.</p>}
          </section>
          <section aria-labelledby="words">
            <h2 id="words">Words</h2>
            <Words />
          </section>
        </div>
      </div>
    </Page>
  );
}

/** What is on the page, with a link to each tool; it stays in view. */
function Contents({ tools, defaults }: { tools: readonly Tool[]; defaults: readonly string[] }) {
  return (
    // what scrolls must be reachable by keyboard, which its links are
    <nav className={`${styles["contents"]} links calm unprinted`} aria-label="On this page">
      <a href="#connect">Connect a client</a>
      {[...Map.groupBy(tools, (tool) => tool.toolset)].map(([set, own]) => (
        // the fixtures of the conformance suite are for few
        <details key={set} open={defaults.includes(set) && set !== "conformance"}>
          <summary>
            {set} <span className={styles["count"]}>{own.length}</span>
          </summary>
          <ul>
            {own.map(({ name }) => (
              <li key={name}>
                <a href={`#${name}`}>
                  <Breakable name={name} />
                </a>
              </li>
            ))}
          </ul>
        </details>
      ))}
      <a href="#words">Words</a>
    </nav>
  );
}

/** A name that a line may end in, behind an underscore. */
function Breakable({ name }: { name: string }) {
  return name.split("_").map((part, at) => (
    // the parts of a name never move
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={at}>
      {at > 0 && (
        <>
          _<wbr />
        </>
      )}
      {part}
    </Fragment>
  ));
}

interface ToolDocsProps {
  tool: Tool;
  /** The MCP address of this server, null where it speaks on standard input and output. */
  address: string | null;
  /** Served where the client's URL does not choose. */
  isDefault: boolean;
}

const TASKS: Readonly<Record<string, string>> = {
  forbidden: "never as a task",
  optional: "with or without a task",
  required: "only as a task",
};

const NEWEST_LEGACY = "2025-11-25";

/** The documentation of one tool. Its name is the anchor: `/dashboard/server/help#progress`. */
function ToolDocs({ tool, address, isDefault }: ToolDocsProps) {
  return (
    <article className={`${styles["tool"]} panel`} aria-labelledby={tool.name}>
      <header className={`${styles["toolHead"]} row`}>
        <h3 id={tool.name} tabIndex={-1}>
          <code>{tool.name}</code>
        </h3>
        <Badge>{tool.toolset}</Badge>
        {tool.task_support !== "forbidden" && <Badge tone="violet">task {tool.task_support}</Badge>}
        {tool.requires.map((name) => (
          <Badge key={name} tone="info">
            needs {name}
          </Badge>
        ))}
        <span className={`${styles["links"]} row`}>
          <ActionLink icon={Wrench} to={`/calls?tool=${tool.name}`}>Calls</ActionLink>
          <CopyButton label="Copy link" text={() => `${location.origin}${DASHBOARD}/server/help#${tool.name}`} />
        </span>
      </header>
      <p>{tool.description}</p>
      <KeyValues
        items={[
          ["Exercises", <Prose key="exercises" text={tool.exercises} />],
          ["A good client shows", <Prose key="shows" text={tool.shows} />],
          ["Runs", TASKS[tool.task_support] ?? tool.task_support],
          ["Revisions", tool.since === tool.until ? tool.since : `${tool.since} to ${tool.until}`],
          ["Served", isDefault ? "by default" : servedAt(tool, address)],
        ]}
      />
      <SchemaTable tool={tool} />
      <Examples tool={tool} address={address} isDefault={isDefault} />
    </article>
  );
}

function servedAt({ toolset }: Tool, address: string | null): string {
  return address === null ? `when started with --tools ${toolset}` : `at ${address}?tools=${toolset}`;
}

function Examples({ tool, address, isDefault }: ToolDocsProps) {
  return (
    <>
      {address !== null && servedIn(tool, "2026-07-28") && (
        <details>
          <summary>Example call with curl, 2026-07-28</summary>
          <CodeBlock title={`${tool.name}, 2026-07-28`} code={curlExample(tool, address, isDefault)} />
        </details>
      )}
      {servedIn(tool, NEWEST_LEGACY) && (
        <details>
          <summary>Example message in a session, {NEWEST_LEGACY}</summary>
          <CodeBlock title={`${tool.name}, ${NEWEST_LEGACY}`} code={messageExample(tool)} />
        </details>
      )}
      <details>
        <summary>Schemas and annotations</summary>
        <JsonView
          title={`Definition of ${tool.name}`}
          value={{ inputSchema: tool.input_schema, outputSchema: tool.output_schema, annotations: tool.annotations }}
        />
      </details>
    </>
  );
}

/** A sentence in which code stands between backticks. */
function Prose({ text }: { text: string }) {
  // every second part was between two of them
  return text.split("`").map((part, index) => {
    // the parts of a constant text never move
    // oxlint-disable-next-line react/no-array-index-key
    return index % 2 === 0 ? part : <code key={index}>{part}</code>;
  });
}

interface Line {
  name: string;
  argument: Argument;
  required: boolean;
}

const COLUMNS: readonly PlainColumn<Line>[] = [
  { key: "name", head: "Argument", width: "fit", cell: ({ name }) => <code>{name}</code> },
  { key: "type", head: "Type", width: "fit", cell: ({ argument }) => (argument.type === undefined ? "any" : String(argument.type)) },
  { key: "values", head: "Values", cell: ({ argument }) => values(argument) },
  { key: "default", head: "Default", width: "fit", cell: ({ argument, required }) => <Default argument={argument} required={required} /> },
  { key: "meaning", head: "Meaning", cell: ({ argument }) => meaning(argument) },
];

/** What may be given, as one reads it. */
function values({ enum: choices, minimum, maximum, maxLength }: Argument): string {
  if (choices !== undefined) return choices.map((choice) => brief(choice)).join(", ");
  if (maxLength !== undefined) return `up to ${maxLength} characters`;
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `at least ${minimum}`;
  return maximum === undefined ? "any" : `at most ${maximum}`;
}

function meaning(argument: Argument): string {
  const header = argument["x-mcp-header"];
  return `${argument.description ?? ""}${header === undefined ? "" : ` (mirrored in the header Mcp-Param-${header})`}`;
}

function Default({ argument, required }: { argument: Argument; required: boolean }) {
  if (required) return "required";
  return argument.default === undefined ? "none" : <code>{brief(argument.default)}</code>;
}

/** The input schema of a tool as a table. */
function SchemaTable({ tool }: { tool: Tool }) {
  const required = requiredOf(tool);
  const lines = argumentsOf(tool).map(([name, argument]) => ({ name, argument, required: required.includes(name) }));
  if (lines.length === 0) return <p>It takes no arguments.</p>;
  return <PlainTable caption={`Arguments of ${tool.name}`} hidden columns={COLUMNS} rows={lines} rowKey={({ name }) => name} />;
}

const WORDS: readonly (readonly [string, string])[] = [
  ["sent", "The server made a message and handed it to a stream or a response. The API calls it emitted."],
  ["received", "A socket of the client took the message. Sent and not received: no reader was connected, or it stopped reading. The API calls it delivered."],
  ["coalesced", "Progress that came too fast and was merged into the next report. The last report is never lost."],
  ["queued", "A task exists and its work has not begun. This is a word of this server: the client gets working."],
  ["outcome", "How a call ended: completed, tool error (a result with isError), protocol error (a JSON-RPC error), cancelled, timed out, disconnected, input required (2026-07-28: the answer asks for more, and the client calls again), or lost (it ran when an earlier server died)."],
  ["done", "The work came to its own end. A cancelled call is never done, whatever progress it had made."],
  ["cancelled by", "What asked the work to stop: notification (notifications/cancelled), disconnect (2026-07-28 over HTTP: the response was closed; on a WebSocket or standard streams: the connection ended; or its draft stream was lost), tasks_cancel, deadline, ttl (the time to live of the task), session_end, shutdown."],
  ["latency", "The time from the cancellation until all of the work had stopped."],
  ["answered", "A response was sent. After a cancellation there must be none."],
  ["protocol 2025, protocol 2026", "2025: the revisions 2025-03-26, 2025-06-18 and 2025-11-25, with initialize and sessions; the API calls it legacy. 2026: the revision 2026-07-28, in which each request stands alone; the API calls it modern."],
  ["session s7, client m7", "s7 is a session of protocol 2025. m7 is one client of protocol 2026 (address, name, version), whose requests have no session. Neither is the session id, which is secret."],
  ["request", "One HTTP request with its response; on a WebSocket and on standard streams one message of the client with its answer. The API calls it an exchange."],
  ["connection w5, i1", "A WebSocket, or the standard input and output of a process: one connection that carries all messages both ways. Its number is that of the HTTP request that became it."],
  ["connection h3", "A tool host: another process that offers tools through this server, on a WebSocket of its own."],
  ["dispatch", "A synchronous tool call with two deadlines: idle, which each valid progress report moves, and a ceiling, which nothing moves. d7 is its name at its tool host."],
  ["in flight", "Dispatches that take a place at a tool host: until they are settled; of those that were cancelled, until the host reports that the work has stopped."],
  ["late", "A message of a tool host about a dispatch that was over. It is dropped and counted."],
  ["stream", "Messages in order for one request (response), for a session (standalone) or for subscriptions/listen (subscription). Over HTTP they are server-sent events, which in protocol 2025 can outlive their connection and be resumed. One of the draft extension (resumable) outlives its connection on every transport."],
  ["waiting", "Sent and not yet received: what a stream keeps for a reader that is away or slow."],
  ["lost", "A stream of the draft extension whose client can never have all of it: abandoned (no reader came back in time), overflow (more waited than may), session ended, or server full. Of a call: it ran when an earlier server died."],
  ["because of", "The entry that caused another one: of an answer its request, of a delivery the first message of it, of what a call sends the start of the call."],
  ["label", "The name that a client was given in its address, /mcp?client=NAME, or by MCP_PROBE_CLIENT on standard streams."],
  ["id 5, id \"5\"", "A number and a string; they are different ids. Ids and progress tokens are shown as they are in JSON."],
  ["noted", "What the server saw to be wrong or without effect, whether it refused it or not: an id that was used before, a notification of no revision, the cancellation of a request that had ended. The clause names the sentence. Not all of it breaks a rule of the judge. The API calls it misuse."],
  ["tool errors (expected)", "Errors that a tool gave as it was asked to: simulated ones, wrong arguments, tasks that fail. They are no fault of the client."],
  ["finding", "A rule that a client broke: failed or warned. It has what was found and expected, the sentence of the specification, and the entries that show it."],
  ["check", "One opportunity of a rule, such as one POST with a body. Broken in 2 of 18 checks: the log had 18 of them, and 2 broke the rule."],
  ["failed (FAIL)", "A MUST was broken, and the evidence is certain."],
  ["warned (WARN)", "A SHOULD was broken, or what robust programs do; or a MUST, seen only indirectly."],
  ["inconclusive (INCONCLUSIVE)", "The rule was exercised, and the log does not contain enough to decide."],
  ["passed (PASS)", "The rule was kept each time it was exercised."],
  ["not observed (NOT_OBSERVED)", "Never exercised, so there is no verdict. The page of the client lists what to try."],
  ["gap", "Entries that this page did not get: evicted (dropped from the log), skipped (too many at once; they can be loaded), restarted (another run of the server)."],
  ["run", "One life of the server. Numbers of entries and calls begin anew with each."],
];

/** The words that the pages use, and exactly what they mean. */
function Words() {
  return <KeyValues items={WORDS} />;
}
