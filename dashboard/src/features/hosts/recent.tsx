import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { newestEvents } from "~/api/event-pages";
import { describe, directionOf } from "~/api/evidence";
import type { Entry, HostRow } from "~/api/schema";
import { useRefresh } from "~/api/use-refresh";
import { useFeed } from "~/feed/use-feed";
import { Badge, DirectionBadge } from "~/ui/badge";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import styles from "./hosts.module.css";

// enough to see what it does; all of them are in the live view
const SHOWN = 50;
// a host that works all the time changes its row with each tick of the feed
const PACE = 1_000;
const OF_DISPATCHES = "dispatch.cancelled,dispatch.late,dispatch.stopped";

const COLUMNS: readonly PlainColumn<Entry>[] = [
  { key: "at", head: "At", cell: (entry) => <At entry={entry} /> },
  { key: "kind", head: "Entry", cell: (entry) => <Kind entry={entry} /> },
  { key: "says", head: "What", cell: (entry) => <Says entry={entry} /> },
];

/** What the server and the host told each other last, and what became of what was cancelled. */
export function Recent({ row }: { row: HostRow }) {
  useRefresh(["host entries"], row, PACE);
  const { data, error } = useQuery({
    queryKey: ["host entries", row.id],
    queryFn: ({ signal }) => recent(row, signal),
  });
  return (
    <section className={styles["part"]} aria-label="Recent entries">
      {error !== null && <p>The entries could not be loaded: {error.message}</p>}
      {data !== undefined && data.length === 0 && <p>No entry of it was found: those were pushed out of the log, or lie before the newest that were looked at.</p>}
      {data !== undefined && data.length > 0 && <PlainTable caption="Recent entries, newest first" columns={COLUMNS} rows={data} rowKey={(entry) => String(entry.seq)} />}
    </section>
  );
}

/** Entries of dispatches name the host, not its connection: those of this one came while it was there. */
async function recent(row: HostRow, signal: AbortSignal): Promise<readonly Entry[]> {
  const own = newestEvents({ connection: row.id }, SHOWN, signal);
  const told = row.name === null ? null : newestEvents({ kind: OF_DISPATCHES, text: `"host":"${row.name}"` }, SHOWN, signal);
  const during = ((await told)?.events ?? []).filter((entry) => entry.at >= row.opened_at && (row.closed === null || entry.at <= row.last_at));
  return [...(await own).events, ...during].toSorted((a, b) => b.seq - a.seq).slice(0, SHOWN);
}

function At({ entry }: { entry: Entry }) {
  return (
    <Link href={`/live?at=${entry.seq}`} className={styles["moment"] ?? ""}>
      <Time at={entry.at} />
    </Link>
  );
}

function Kind({ entry }: { entry: Entry }) {
  const direction = directionOf(entry);
  return (
    <>
      {direction !== null && <DirectionBadge direction={direction} peer="tool host" />} <Badge>{entry.kind}</Badge>
    </>
  );
}

function Says({ entry }: { entry: Entry }) {
  const run = useFeed((snapshot) => snapshot.hello?.run);
  if (!("call" in entry) || entry.call === null) return describe(entry);
  return (
    <>
      {describe(entry)}, for call <Link href={`/calls/${run}.${entry.call}`}>{entry.call}</Link>
    </>
  );
}
