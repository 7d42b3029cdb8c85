import { useMemo } from "react";
import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import type { RefusalRow, SessionRow } from "~/protocol/schema";
import { useFeed } from "~/trace/use-feed";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { UNATTRIBUTED } from "~/words/client-name";
import styles from "./sessions.module.css";

// enough to see what a client does wrong; all of them are in the live view
const SHOWN = 100;

const COLUMNS: readonly PlainColumn<RefusalRow>[] = [
  { key: "at", head: "At", cell: (row) => <At row={row} /> },
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

function At({ row }: { row: RefusalRow }) {
  return (
    <Link href={traceHref({ at: row.id })} className={styles["moment"] ?? ""}>
      <Time at={row.at} />
    </Link>
  );
}

/** The errors that the server answered because of what the client sent. */
export function RefusalList({ row: { id, refused, requests } }: { row: SessionRow }) {
  const all = useFeed((snapshot) => snapshot.tables.refusals);
  const session = id === UNATTRIBUTED ? null : id;
  const rows = useMemo(() => all.filter((each) => each.session === session).toReversed().slice(0, SHOWN), [all, session]);
  return (
    <section className={styles["part"]} aria-label="Refused requests">
      {rows.length === 0 && <h3>Refused requests: {refused}</h3>}
      {refused === 0 && session !== null && <p>The server answered none of {requests} requests with an error because of what the client sent.</p>}
      {rows.length > 0 && <PlainTable caption={`Refused requests: ${refused}, newest first`} columns={COLUMNS} rows={rows} rowKey={(each) => each.id} />}
      {rows.length < refused && <p>{refused - rows.length} more are not listed: the page lists {SHOWN}, and the server keeps the newest 2000 of all clients.</p>}
      <p className={styles["note"]}>Without errors that a limit, a shutdown or a tool caused. A tool result with isError is not a refusal.</p>
    </section>
  );
}
