import { useMemo } from "react";
import { Link } from "wouter";
import { traceHref } from "~/protocol/client";
import type { StreamRow } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { Segmented } from "~/ui/fields";
import { Panel, Stack } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { useUrlState } from "~/ui/window";
import { StatusBadge } from "~/widgets/badges";
import { stateIn, stateOf } from "~/words/states";
import { ServerPage } from "./server-view";

// a page of streams is to be read; all of them are at /api/streams
const SHOWN = 100;

const COLUMNS: readonly PlainColumn<StreamRow>[] = [
  { key: "id", head: "Stream", width: "fit", cell: (row) => <StreamLink row={row} /> },
  { key: "purpose", head: "Purpose", width: "fit", cell: (row) => row.purpose },
  { key: "status", head: "Status", width: "fit", cell: (row) => <StreamStatus row={row} /> },
  { key: "reader", head: "Reader", cell: (row) => <Reader row={row} /> },
  { key: "messages", head: "Sent", align: "end", width: "fit", cell: (row) => row.messages },
  { key: "delivered", head: "Received", align: "end", width: "fit", cell: (row) => row.delivered },
  { key: "waiting", head: "Waiting", align: "end", width: "fit", cell: (row) => row.waiting },
  { key: "resumed", head: "Resumed", align: "end", width: "fit", cell: (row) => row.resumed },
  { key: "opened", head: "Opened", width: "fit", cell: (row) => <Time at={row.opened_at} /> },
];

/** The streams of messages: who reads them, and what of them was received. */
export default function StreamsView() {
  return (
    <ServerPage part="Streams">
      {() => (
        <Stack>
          <Streams />
        </Stack>
      )}
    </ServerPage>
  );
}

/** The newest first. */
function Streams() {
  const rows = useFeed((snapshot) => snapshot.tables.streams);
  const [which, setWhich] = useUrlState("streams", "open");
  const listed = useMemo(() => rows.filter((row) => which === "all" || isOpen(row)).toReversed(), [rows, which]);
  return (
    <Panel title="Streams" actions={<Choices which={which} onChoose={setWhich} all={rows.length} shown={Math.min(SHOWN, listed.length)} />}>
      {listed.length > 0 && <PlainTable caption="Streams" hidden columns={COLUMNS} rows={listed.slice(0, SHOWN)} rowKey={(row) => row.id} />}
      {listed.length === 0 && (
        <p className="quiet">
          No stream is open. A call of <Link href="/server/help/progress">progress</Link> opens one for its answer. So does a GET of the MCP address
          with a session, and each session on a WebSocket or on standard streams.
        </p>
      )}
    </Panel>
  );
}

// one of the draft extension has ended and still waits for its client, until that comes or it is lost
function isOpen(row: StreamRow): boolean {
  return row.ended_at === null || row.connected || (row.purpose === "resumable" && row.waiting > 0);
}

/** Whether more may come: of a stream that goes on while nobody reads it, that its reader is missing. */
function StreamStatus({ row }: { row: StreamRow }) {
  const ended = useEnded();
  if (row.lost !== null) return <Badge tone="bad">lost: {stateOf(row.lost).label}</Badge>;
  if (row.status !== "live") return <StatusBadge status={row.status} />;
  if (row.connected) return <StatusBadge status={stateIn("open", ended)} />;
  return <Badge tone="warn">no reader</Badge>;
}

function StreamLink({ row }: { row: StreamRow }) {
  const filter = [...(row.session === null ? [] : [`client:${row.session}`]), `stream:${row.stream}`].join(" ");
  return (
    <Link href={traceHref({ filter })}>
      <code>{row.id}</code>
    </Link>
  );
}

/** Who reads the stream, or what became of the reader. */
function Reader({ row }: { row: StreamRow }) {
  if (row.connected) return row.connection ?? `request #${row.reader}`;
  if (row.closed_by === null) return <span className="quiet">{row.ended_at === null ? "none yet" : "none"}</span>;
  return (
    <>
      {row.closed_by === "client" ? "client disconnected" : row.closed_by} {row.left_at !== null && <Time at={row.left_at} look="ago" />}
    </>
  );
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
    <p className="quiet">
      <Segmented label="Streams listed" options={OPTIONS} value={which} onChange={onChoose} /> {shown} shown of {all}
    </p>
  );
}
