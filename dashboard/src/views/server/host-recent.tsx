import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import type { HostRow } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import type { Viewed } from "~/trace/entry";
import { newestEvents } from "~/trace/event-pages";
import { useFeed } from "~/trace/use-feed";
import { Badge } from "~/ui/badge";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { DirectionBadge } from "~/widgets/badges";
import { describe, kindOf } from "~/words/summary";
import styles from "./hosts.module.css";

// enough to see what it does; all of them are in the live view
const SHOWN = 50;
// a host that works all the time changes its row with each tick of the feed
const PACE = 1_000;

interface Told {
  entry: Viewed;
  says: string;
}

const COLUMNS: readonly PlainColumn<Told>[] = [
  { key: "at", head: "At", cell: ({ entry }) => <At entry={entry} /> },
  { key: "kind", head: "Entry", cell: ({ entry }) => <Kind entry={entry} /> },
  { key: "says", head: "Message", cell: ({ entry, says }) => <Says call={entry.call} says={says} /> },
];

/** The newest messages between the server and the host, and what became of dispatches that were cancelled. */
export function Recent({ row }: { row: HostRow }) {
  useRefresh(["host entries"], row, PACE);
  const { data, error } = useQuery({
    queryKey: ["host entries", row.id],
    queryFn: ({ signal }) => recent(row.id, signal),
  });
  return (
    <section className={styles["part"]} aria-label="Recent entries">
      {error !== null && <p>The entries could not be loaded: {error.message}</p>}
      {data !== undefined && data.length === 0 && <p>No recent entries found. Older ones may have been dropped from the log.</p>}
      {data !== undefined && data.length > 0 && <PlainTable caption="Recent entries, newest first" columns={COLUMNS} rows={data} rowKey={({ entry }) => String(entry.seq)} />}
    </section>
  );
}

/** The newest entries of the host's connection, and what each says. */
async function recent(connection: string, signal: AbortSignal): Promise<readonly Told[]> {
  const { events } = await newestEvents({ connection }, SHOWN, signal);
  return events.map((entry) => ({ entry, says: describe(entry, entry.view.method) }));
}

function At({ entry }: { entry: Viewed }) {
  return (
    <Link href={traceHref({ at: entry.seq })} className={styles["moment"] ?? ""}>
      <Time at={entry.at} />
    </Link>
  );
}

function Kind({ entry }: { entry: Viewed }) {
  const { direction } = entry.view;
  return (
    <>
      {direction !== null && <DirectionBadge direction={direction} peer="tool host" />} <Badge title={entry.kind}>{kindOf(entry.kind)}</Badge>
    </>
  );
}

function Says({ call, says }: { call: string | null; says: string }) {
  const run = useFeed((snapshot) => snapshot.hello?.run);
  if (call === null) return says;
  return (
    <>
      {says}, for call <Link href={`/calls/${run}.${call}`}>{call}</Link>
    </>
  );
}
