import { useQuery } from "@tanstack/react-query";
import { Fragment, useMemo } from "react";
import type { ClientMisuse, RefusalRow, SessionRow } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { newestEvents } from "~/trace/use-trace";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { useJudged } from "~/trace/findings";
import { EntryMarks, EntryTime } from "~/widgets/findings";
import { UNATTRIBUTED } from "~/words/text";
import styles from "./report.module.css";

// enough to see what a client does wrong; all of them are in the live view
const SHOWN = 100;

const COLUMNS: readonly PlainColumn<RefusalRow>[] = [
  { key: "at", head: "At", cell: ({ id, at }) => <EntryTime entry={{ seq: id, at }} /> },
  { key: "request", head: "Request and answer", cell: (row) => <Answered row={row} /> },
];

function Answered({ row: { method, status, code, message } }: { row: RefusalRow }) {
  return (
    <>
      {method === null ? "unreadable request" : <code>{method}</code>}: {status !== null && `HTTP ${status}, `}
      {code}, {message}
    </>
  );
}

/** The errors that the server answered because of what the client sent. */
export function RefusalList({ row: { id, refused, requests } }: { row: SessionRow }) {
  const all = useFeed((snapshot) => snapshot.tables.refusals);
  const session = id === UNATTRIBUTED ? null : id;
  const rows = useMemo(() => all.filter((each) => each.session === session).toReversed().slice(0, SHOWN), [all, session]);
  return (
    <section className={`${styles["part"]} column`} aria-label="Refused requests">
      {rows.length === 0 && <h3>Refused requests: {refused}</h3>}
      {refused === 0 && session !== null && <p>The server answered none of {requests} requests with an error because of what the client sent.</p>}
      {rows.length > 0 && <PlainTable caption={`Refused requests: ${refused}, newest first`} columns={COLUMNS} rows={rows} rowKey={(each) => each.id} />}
      {rows.length < refused && <p>{refused - rows.length} more are not listed: the page lists {SHOWN}, and the server keeps the newest 2000 of all clients.</p>}
      <p className="aside">Without errors that a limit, a shutdown or a tool caused. A tool result with isError is not a refusal.</p>
    </section>
  );
}

// enough to see what a client does wrong; all of them are in the live view
const NOTED = 100;

const NOTED_COLUMNS: readonly PlainColumn<ClientMisuse>[] = [
  { key: "at", head: "At", cell: (entry) => <EntryTime entry={entry} /> },
  { key: "what", head: "What", cell: (entry) => `${entry.what}: ${entry.detail}` },
  { key: "clause", head: "Clause", width: "long", cell: (entry) => <Clause text={entry.clause} /> },
];

/** With what the judge says of the message that was noted: not all that is noted breaks a rule. */
const JUDGED_COLUMNS: readonly PlainColumn<ClientMisuse>[] = [...NOTED_COLUMNS, { key: "finding", head: "Finding", cell: ({ cause }) => <NotedFinding cause={cause} /> }];

function NotedFinding({ cause }: Pick<ClientMisuse, "cause">) {
  const { run, byEntry } = useJudged();
  return cause !== null && byEntry.has(cause) ? <EntryMarks run={run} seq={cause} /> : "none";
}

/** A clause names a page, whose parts are where a line may end. */
function Clause({ text }: { text: string }) {
  const parts = text.split("/");
  return (
    <code>
      {parts.map((part, index) => (
        // the parts of a text never move
        // oxlint-disable-next-line react/no-array-index-key
        <Fragment key={index}>
          {part}
          {index < parts.length - 1 && "/"}
          <wbr />
        </Fragment>
      ))}
    </code>
  );
}

/** The newest entries of a client, or of what is unattributed. */
async function entriesOf(session: string, signal: AbortSignal): Promise<ClientMisuse[]> {
  const own = session === UNATTRIBUTED ? {} : { session };
  const { events } = await newestEvents({ ...own, kind: "client.misuse" }, NOTED, signal);
  const misuse = events.filter((event) => event.kind === "client.misuse");
  return session === UNATTRIBUTED ? misuse.filter((event) => event.session === null) : misuse;
}

/** What the server noted. Whether it breaks a rule is for the judge to say: without a number of its own, as that of the judge counts rules. */
export function NotedList({ row: { id, misuse: count } }: { row: SessionRow }) {
  const judged = useJudged().state === "on";
  const { data, error } = useQuery({
    queryKey: ["misuse", id, count],
    queryFn: ({ signal }) => entriesOf(id, signal),
    enabled: count > 0,
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
  });
  const entries = data ?? [];
  return (
    <section className={`${styles["part"]} column`} aria-label="Noted by the server">
      {entries.length === 0 && <h3>Noted by the server{count === 0 && ": nothing"}</h3>}
      {error !== null && <p>The entries could not be loaded: {error.message}</p>}
      {entries.length > 0 && <PlainTable caption="Noted by the server, newest first" columns={judged ? JUDGED_COLUMNS : NOTED_COLUMNS} rows={entries} rowKey={(entry) => String(entry.seq)} />}
      {data !== undefined && entries.length < count && <p>{count - entries.length} more are not listed, or were dropped from the log.</p>}
      <p className="aside">
        What is wrong or has no effect, whether the server refused it or not: an id that was used before, or the cancellation of a request
        that had ended. Not all of it breaks a rule: the judge decides that{judged && ", and its finding stands beside it"}.
      </p>
    </section>
  );
}
