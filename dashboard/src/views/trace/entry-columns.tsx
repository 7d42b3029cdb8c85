import { type ReactNode, useMemo } from "react";
import { scalarText } from "~/protocol/json";
import type { SessionRow } from "~/protocol/schema";
import { isAnswer, isMessage, type Kept, peerOf, type Span, type Viewed } from "~/trace/entry";
import { type Snapshot, useFeed } from "~/trace/feed";
import type { Trace } from "~/trace/trace";
import { Badge } from "~/ui/badge";
import { ValueButton } from "~/ui/buttons";
import type { Column } from "~/ui/grid-columns";
import { Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { ClientMark, DirectionBadge } from "~/widgets/badges";
import { FilterBy } from "~/widgets/filter-line";
import { EntryMarks } from "~/widgets/findings";
import { kindOf, summaryOf, unanswered } from "~/words/entries";
import type { Row } from "./rows";
import styles from "./trace.module.css";

/** A cell that only entries have. */
const cell = (of: (kept: Kept) => ReactNode) => (row: Row) => (row.type === "entry" ? of(row) : null);
const by = <Value,>(value: (kept: Kept) => Value) => (row: Row) => (row.type === "entry" ? value(row) : undefined);

/** The columns of the list of all entries. */
export function entryColumns(trace: Trace, onOpen: (run: string, seq: number) => void): readonly Column<Row>[] {
  return [
    { key: "time", head: "Time", width: { fit: [6, 9] }, sortBy: by(({ entry }) => entry.at), cell: cell(({ entry }) => <Time at={entry.at} />) },
    { key: "seq", head: "#", width: { fit: [2, 5] }, align: "end", from: 38, sortBy: by(({ entry }) => entry.seq), cell: cell(({ entry }) => <span className="aside">{entry.seq}</span>) },
    { key: "client", head: "Client", width: { fit: [3, 14] }, from: 32, sortBy: by(({ entry }) => entry.session ?? entry.label), cell: cell(({ run, entry }) => <EntryClient run={run} entry={entry} />) },
    { key: "way", head: "Direction", width: { fit: [4, 8] }, from: 54, sortBy: by(({ entry }) => entry.view.direction), cell: cell(({ entry }) => <Way entry={entry} />) },
    { key: "what", head: "Method or kind", width: { fit: [6, 18] }, sortBy: by(({ entry }) => entry.view.method ?? entry.kind), cell: cell(({ entry }) => <What entry={entry} />) },
    { key: "id", head: "Id", width: { fit: [2, 7] }, from: 54, cell: cell(({ entry }) => <Id entry={entry} />) },
    {
      key: "summary",
      head: "Summary",
      width: { grow: 1, least: 8 },
      cell: cell(({ run, entry }) => (
        <>
          <EntryMarks run={run} seq={entry.seq} reachable={false} />
          <Line entry={entry} />
        </>
      )),
    },
    { key: "pair", head: "Pair", title: "The other half of a request and its answer, with the time between them", width: { fit: [4, 10] }, from: 72, cell: cell(({ run, entry }) => <Pair run={run} entry={entry} trace={trace} onOpen={onOpen} />) },
  ];
}

/** All of an entry in two lines, for a phone. */
export function entryCard(row: Row): ReactNode {
  if (row.type !== "entry") return null;
  const { run, entry } = row;
  return (
    <span className={styles["two"]}>
      <span className="cut">
        <Time at={entry.at} /> <What entry={entry} /> <Way entry={entry} /> <EntryClient run={run} entry={entry} />
      </span>
      <span className="cut">
        <EntryMarks run={run} seq={entry.seq} reachable={false} />
        <Line entry={entry} />
      </span>
    </span>
  );
}

interface PairProps extends Omit<Kept, "key"> {
  trace: Trace;
  onOpen: (run: string, seq: number) => void;
}

function Pair({ run, entry, trace, onOpen }: PairProps) {
  // the other half may come when the row is there
  const seq = useFeed(() => (entry.view.method !== null && isMessage(entry) && entry.rpc === "request" ? trace.answerOf(run, entry) : trace.requestOf(run, entry))?.seq ?? 0);
  const state = useFeed(() => trace.spanOf(run, entry.view.exchange)?.row.ending.state ?? "");
  if (!isMessage(entry)) return null;
  const other = trace.entryOf(run, seq);
  if (entry.rpc === "request") {
    if (other === undefined && (state === "cancelled" || state === "disconnected")) return <span className="aside" title={unanswered(state)}>no answer due</span>;
    if (other === undefined) return <span className="aside">no answer yet</span>;
    return <ValueButton title="Show the answer" onClick={() => onOpen(run, seq)}>{`#${seq} after ${between(entry, other)}`}</ValueButton>;
  }
  if (other === undefined) return isAnswer(entry) ? <span className="aside">request not known</span> : null;
  return <ValueButton title="Show the request" onClick={() => onOpen(run, seq)}>{`${between(other, entry)} after #${seq}`}</ValueButton>;
}

type Client = Pick<SessionRow, "client_name" | "client_version" | "revision" | "era">;

function clientIn({ hello, tables, trace }: Snapshot, run: string, session: string): Client | null {
  const row = run === hello?.run ? tables.sessions.find(({ id }) => id === session) : undefined;
  return row ?? trace.runs.find((each) => each.run === run)?.clients.get(session) ?? null;
}

/** The client of a label, which means another one in each run; null where it is not known. */
export function useClient(run: string, session: string | null): Client | null {
  // its row is another one with each request that is counted; this text is the same
  const text = useFeed((snapshot) => {
    const found = session === null ? null : clientIn(snapshot, run, session);
    return found === null ? "null" : JSON.stringify({ client_name: found.client_name, client_version: found.client_version, revision: found.revision, era: found.era });
  });
  return useMemo(() => JSON.parse(text) as Client | null, [text]);
}

interface WhoProps {
  run: string;
  session: string | null;
  label: string | null;
}

/** Whose an exchange or an entry is: the label with its colour, and the name that the client gives itself. */
function Who({ run, session, label }: WhoProps) {
  const client = useClient(run, session);
  if (session === null && label === null) return <span className="aside">–</span>;
  const title = client === null ? "client not known" : `${client.client_name} ${client.client_version}, ${client.revision}`;
  return (
    <span title={title}>
      <FilterBy word="client" value={session ?? label ?? ""}>
        {session !== null && <ClientMark label={session} />} {label}
      </FilterBy>{" "}
      <span className="aside">{client?.client_name === "" ? "without a name" : client?.client_name}</span>
    </span>
  );
}

export function ClientCell({ span: { run, row } }: { span: Span }) {
  if (row.transport === "host") return <span className="aside">tool host</span>;
  return <Who run={run} session={row.session} label={row.label} />;
}

/** The client of an entry, or the tool host that one about no call is of. */
export function EntryClient({ run, entry }: Omit<Kept, "key">) {
  const { session, label, connection } = entry;
  if (session === null && label === null && entry.kind.startsWith("host.")) {
    return (
      <>
        {connection} <span className="aside">{("host" in entry && entry.host) || "tool host"}</span>
      </>
    );
  }
  return <Who run={run} session={session} label={label} />;
}

/** The direction; of a message to the client also how far it got. */
export function Way({ entry }: { entry: Viewed }) {
  const { direction, delivered } = entry.view;
  if (entry.kind === "message.dropped") {
    return (
      <Badge title={`not sent: ${entry.why}`}>
        ← not sent
      </Badge>
    );
  }
  if (entry.kind === "message.emitted") {
    return delivered === null ? (
      <Badge tone="warn" title="sent, and not yet taken by a socket">
        ← sent
      </Badge>
    ) : (
      <Badge tone="good" title={`taken by a socket, entry ${delivered.seq}`}>
        ← received
      </Badge>
    );
  }
  return direction === null ? null : <DirectionBadge direction={direction} peer={peerOf(entry)} />;
}

/** The method and what kind of message it is, or the kind of the entry. */
export function What({ entry }: { entry: Viewed }) {
  const { method } = entry.view;
  if (!isMessage(entry)) {
    return (
      <span className={styles["kind"]} title={entry.kind}>
        {kindOf(entry.kind)}
      </span>
    );
  }
  return (
    <>
      {method !== null && <span className={styles["method"]}>{method} </span>}
      {(entry.rpc !== "notification" || method === null) && <span className="aside">{entry.rpc}</span>}
    </>
  );
}

/** The id of the message, or of the request that a call runs for, with its JSON type. */
export function Id({ entry }: { entry: Viewed | null }) {
  const id = entry === null ? null : "rpc" in entry ? entry.id : "request_id" in entry ? entry.request_id : null;
  if (id === null) return null;
  return (
    <code className={typeof id === "string" ? styles["string"] : styles["number"]} title={typeof id === "string" ? "string" : "number"}>
      {scalarText(id)}
    </code>
  );
}

/** What an entry says beside its kind. */
export function Line({ entry }: { entry: Viewed }) {
  const { mark, text } = summaryOf(entry, entry.view.method);
  return (
    <span title={text}>
      {mark !== undefined && <Badge tone={mark.tone}>{mark.text}</Badge>} {text}
    </span>
  );
}

/** By the monotonic clock, which no correction of the time of day changes. */
export function between(first: { mono: number }, second: { mono: number }): string {
  return formatDuration(Math.max(0, (second.mono - first.mono) * 1000));
}
