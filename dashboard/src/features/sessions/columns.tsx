import type { SessionRow } from "~/api/schema";
import { Badge, EraBadge, StatusBadge, TransportBadge } from "~/ui/badge";
import type { Column } from "~/ui/data-table";
import { Time } from "~/ui/time";

/** Whether a session is open, or why it is not; a modern client has none. */
export function SessionState({ row }: { row: SessionRow }) {
  if (row.era === "modern") return <Badge title="2026-07-28 has no sessions">no session</Badge>;
  if (row.closed === null) return <StatusBadge status="open" />;
  return <Badge title={`why it ended: ${row.closed}`}>closed: {row.closed}</Badge>;
}

export function Misuse({ count }: { count: number }) {
  return count === 0 ? "0" : <Badge tone="bad">{count} misuse</Badge>;
}

export const COLUMNS: readonly Column<SessionRow>[] = [
  { key: "id", head: "Label", width: "4rem", cell: (row) => <code>{row.id}</code> },
  { key: "client", head: "Client", width: "minmax(7rem, 1fr)", cell: (row) => `${row.client_name} ${row.client_version}` },
  { key: "era", head: "Era", width: "5rem", cell: (row) => <EraBadge era={row.era} revision={row.revision} /> },
  { key: "transport", head: "Over", width: "6rem", cell: (row) => <TransportBadge transport={row.transport} /> },
  { key: "revision", head: "Revision", width: "5.4rem", cell: (row) => row.revision },
  { key: "opened", head: "First message", width: "6rem", cell: (row) => <Time at={row.opened_at} /> },
  { key: "last", head: "Last message", width: "6rem", cell: (row) => <Time at={row.last_at} look="ago" /> },
  { key: "state", head: "State", width: "minmax(8.5rem, 12rem)", cell: (row) => <SessionState row={row} /> },
  { key: "requests", head: "Requests", width: "5rem", align: "end", cell: (row) => row.requests },
  { key: "calls", head: "Tool calls", width: "5rem", align: "end", cell: (row) => sum(row.tools) },
  { key: "misuse", head: "Misuse", width: "5.5rem", align: "end", cell: (row) => <Misuse count={row.misuse} /> },
];

/** Those that fit beside the detail of one. */
export const FEW_COLUMNS = COLUMNS.filter(({ key }) => ["id", "client", "era", "last", "state", "misuse"].includes(key));

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}
