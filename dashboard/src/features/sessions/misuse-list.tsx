import { Fragment } from "react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { newestEvents } from "~/api/event-pages";
import type { ClientMisuse } from "~/api/schema";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import styles from "./sessions.module.css";

// enough to see what a client does wrong; all of them are in the live view
const SHOWN = 100;

const COLUMNS: readonly PlainColumn<ClientMisuse>[] = [
  { key: "at", head: "At", cell: (entry) => <At entry={entry} /> },
  { key: "what", head: "What", cell: (entry) => `${entry.what}: ${entry.detail}` },
  { key: "clause", head: "Clause", cell: (entry) => <Clause text={entry.clause} /> },
];

function At({ entry }: { entry: ClientMisuse }) {
  return (
    <Link href={`/live?at=${entry.seq}`} className={styles["moment"] ?? ""}>
      <Time at={entry.at} />
    </Link>
  );
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

/** What the client did that its revision forbids; `count` is how often it did. */
export function MisuseList({ session, count }: { session: string; count: number }) {
  const { data, error } = useQuery({
    queryKey: ["misuse", session, count],
    queryFn: ({ signal }) => newestEvents({ session, kind: "client.misuse" }, SHOWN, signal),
    enabled: count > 0,
    placeholderData: (before, query) => (query?.queryKey[1] === session ? before : undefined),
  });
  const entries = (data?.events ?? []).filter((event) => event.kind === "client.misuse");
  return (
    <section className={styles["part"]} aria-label="Misuse">
      {entries.length === 0 && <h3>Misuse</h3>}
      {count === 0 && <p>None: nothing that its revision forbids.</p>}
      {error !== null && <p>The entries could not be loaded: {error.message}</p>}
      {entries.length > 0 && <PlainTable caption={`Misuse: ${count}, newest first`} columns={COLUMNS} rows={entries} rowKey={(entry) => String(entry.seq)} />}
      {data !== undefined && entries.length < count && <p>{count - entries.length} more are not listed, or were pushed out of the log.</p>}
    </section>
  );
}
