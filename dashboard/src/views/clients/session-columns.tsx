import type { SessionRow } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import type { Column } from "~/ui/data-table";
import { Time } from "~/ui/time";
import { EraBadge, StatusBadge, TransportBadge } from "~/widgets/badges";
import { ClientMark } from "~/widgets/client-mark";
import { UNATTRIBUTED, clientOf } from "~/words/client-name";

/** Whether a session is open, or why it is not; a modern client has none. */
export function SessionState({ row }: { row: SessionRow }) {
  if (row.era === null) return null;
  if (row.era === "modern") return <Badge title="2026-07-28 has no sessions">no session</Badge>;
  if (row.closed === null) return <StatusBadge status="open" />;
  return <Badge title={`why it ended: ${row.closed}`}>closed: {row.closed}</Badge>;
}

/** The label that a client was given, where it has one, with its name and version. */
export function nameOf(row: SessionRow): string {
  return row.id === UNATTRIBUTED ? "no known client" : clientOf(row);
}

/** The badge of a count that is better 0. */
function Bad({ count }: { count: number }) {
  return count === 0 ? "0" : <Badge tone="bad">{count}</Badge>;
}

const NONE = "–";

export const COLUMNS: readonly Column<SessionRow>[] = [
  { key: "id", head: "Session", width: "6rem", cell: (row) => (row.era === null ? row.id : <ClientMark label={row.id} />) },
  { key: "client", head: "Client", width: "minmax(6.5rem, 1fr)", cell: nameOf },
  { key: "era", head: "Era", width: "4.5rem", cell: (row) => (row.era === null ? NONE : <EraBadge era={row.era} revision={row.revision} />) },
  { key: "transport", head: "Over", width: "5.6rem", cell: (row) => (row.transport === null ? NONE : <TransportBadge transport={row.transport} />) },
  { key: "revision", head: "Revision", width: "5.4rem", cell: (row) => row.revision || NONE },
  { key: "opened", head: "First message", width: "6rem", cell: (row) => <Time at={row.opened_at} /> },
  { key: "last", head: "Last message", width: "6rem", cell: (row) => <Time at={row.last_at} look="ago" /> },
  { key: "state", head: "State", width: "minmax(7.6rem, 10rem)", cell: (row) => <SessionState row={row} /> },
  { key: "requests", head: "Requests", width: "4.2rem", align: "end", cell: (row) => (row.era === null ? NONE : row.requests) },
  { key: "calls", head: "Tool calls", width: "4.6rem", align: "end", cell: (row) => (row.era === null ? NONE : callsOf(row)) },
  { key: "refused", head: "Refused", width: "4.2rem", align: "end", cell: (row) => <Bad count={row.refused} /> },
  { key: "misuse", head: "Violations noted", width: "6.4rem", align: "end", cell: (row) => <Bad count={row.misuse} /> },
];

/** Those that fit beside the detail of one. */
export const FEW_COLUMNS = COLUMNS.filter(({ key }) => ["id", "client", "era", "last", "refused", "misuse"].includes(key));

/** How many tool calls a client has begun. */
export function callsOf(row: SessionRow): number {
  return Object.values(row.tools).reduce((all, count) => all + count, 0);
}
