import { useMemo } from "react";
import { scalarText } from "~/protocol/json";
import type { SessionRow } from "~/protocol/schema";
import type { Kept, Span, Viewed } from "~/trace/entry";
import { isMessage, peerOf } from "~/trace/facts";
import type { Snapshot } from "~/trace/feed";
import { useFeed } from "~/trace/use-feed";
import { Badge } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { DirectionBadge } from "~/widgets/badges";
import { ClientMark } from "~/widgets/client-mark";
import { FilterBy } from "~/widgets/filter-by";
import { kindOf, summaryOf } from "~/words/summary";
import styles from "./trace.module.css";

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
export function Who({ run, session, label }: WhoProps) {
  const client = useClient(run, session);
  if (session === null && label === null) return <span className={styles["quiet"]}>–</span>;
  const title = client === null ? "client not known" : `${client.client_name} ${client.client_version}, ${client.revision}`;
  return (
    <span title={title}>
      <FilterBy word="client" value={session ?? label ?? ""}>
        {session !== null && <ClientMark label={session} />} {label}
      </FilterBy>{" "}
      <span className={styles["quiet"]}>{client?.client_name === "" ? "without a name" : client?.client_name}</span>
    </span>
  );
}

export function ClientCell({ span: { run, row } }: { span: Span }) {
  if (row.transport === "host") return <span className={styles["quiet"]}>tool host</span>;
  return <Who run={run} session={row.session} label={row.label} />;
}

/** The client of an entry, or the tool host that one about no call is of. */
export function EntryClient({ run, entry }: Omit<Kept, "key">) {
  const { session, label, connection } = entry;
  if (session === null && label === null && entry.kind.startsWith("host.")) {
    return (
      <>
        {connection} <span className={styles["quiet"]}>{("host" in entry && entry.host) || "tool host"}</span>
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
      <Badge tone="bad" title="made, but not sent">
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
      {(entry.rpc !== "notification" || method === null) && <span className={styles["quiet"]}>{entry.rpc}</span>}
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
