import { useMemo } from "react";
import { Link } from "wouter";
import type { StreamRow } from "~/protocol/schema";
import { useFeed } from "~/trace/use-feed";
import { Badge } from "~/ui/badge";
import { Segmented } from "~/ui/choice";
import { Panel } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { useUrlState } from "~/ui/url-state";
import { StatusBadge } from "~/widgets/badges";
import { stateOf } from "~/words/states";
import styles from "./server.module.css";

// a page of streams is to be read; all of them are at /api/streams
const SHOWN = 100;

const COLUMNS: readonly PlainColumn<StreamRow>[] = [
  { key: "id", head: "Stream", cell: (row) => <StreamLink row={row} /> },
  { key: "purpose", head: "Purpose", cell: (row) => row.purpose },
  { key: "status", head: "Status", cell: (row) => <StreamStatus row={row} /> },
  { key: "opened", head: "Opened", cell: (row) => <Time at={row.opened_at} /> },
  { key: "messages", head: "Emitted", align: "end", cell: (row) => row.messages },
  { key: "delivered", head: "Delivered", align: "end", cell: (row) => row.delivered },
  { key: "waiting", head: "Waiting", align: "end", cell: (row) => row.waiting },
  { key: "connected", head: "Reader", cell: (row) => <Reader row={row} /> },
  { key: "resumed", head: "Resumed", align: "end", cell: (row) => row.resumed },
  { key: "ended", head: "Ended", cell: (row) => (row.ended_at === null ? "not yet" : <Time at={row.ended_at} />) },
];

/** The streams of messages, newest first: who reads them, and what of them was delivered. */
export function Streams() {
  const rows = useFeed((snapshot) => snapshot.tables.streams);
  const [which, setWhich] = useUrlState("streams", "open");
  const listed = useMemo(
    () => rows.filter((row) => which === "all" || isOpen(row)).toReversed(),
    [rows, which],
  );
  return (
    <Panel
      title="Streams"
      actions={<Choices which={which} onChoose={setWhich} all={rows.length} shown={Math.min(SHOWN, listed.length)} />}
    >
      {listed.length > 0 && (
        <PlainTable
          caption="Streams"
          columns={COLUMNS}
          rows={listed.slice(0, SHOWN)}
          rowKey={(row) => row.id}
        />
      )}
      {listed.length === 0 && (
        <p className={styles["quiet"]}>
          No stream is open. A call of <Link href="/help/progress">progress</Link> opens one for its answer; a GET of the MCP
          address with a session opens a standalone one, and so does a session on a WebSocket or on standard streams.
        </p>
      )}
    </Panel>
  );
}

// one of the draft extension has ended and still waits for its client, until that comes or it is lost
function isOpen(row: StreamRow): boolean {
  return row.ended_at === null || row.connected || (row.purpose === "resumable" && row.waiting > 0);
}

function StreamStatus({ row }: { row: StreamRow }) {
  if (row.lost === null) return <StatusBadge status={row.status} />;
  return <Badge tone="bad">lost: {stateOf(row.lost).label}</Badge>;
}

function StreamLink({ row }: { row: StreamRow }) {
  const query = new URLSearchParams({ ...(row.session !== null && { session: row.session }), stream: row.stream });
  return (
    <Link href={`/live?${query}`}>
      <code>{row.id}</code>
    </Link>
  );
}

function Reader({ row }: { row: StreamRow }) {
  if (row.connected) return <Badge tone="good">connected: {row.connection ?? `exchange ${row.reader}`}</Badge>;
  if (row.closed_by !== null) return <Badge>closed by {row.closed_by}</Badge>;
  return <Badge>{row.ended_at === null ? "none yet" : "nobody"}</Badge>;
}

interface ChoicesProps {
  which: string;
  onChoose: (which: string) => void;
  all: number;
  shown: number;
}

const OPTIONS = [
  { value: "open", label: "Open" },
  { value: "all", label: "All" },
];

/** Which streams are listed, and how many there are. */
function Choices({ which, onChoose, all, shown }: ChoicesProps) {
  return (
    <p className={styles["quiet"]}>
      <Segmented label="Streams listed" options={OPTIONS} value={which} onChange={onChoose} /> {shown} shown of {all}
    </p>
  );
}
