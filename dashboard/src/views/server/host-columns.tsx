import type { HostRow } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import type { Column } from "~/ui/grid-columns";
import { Time } from "~/ui/time";
import { StatusBadge } from "~/widgets/badges";

/** Whether a tool host is there, or why it is not. */
export function HostState({ row }: { row: HostRow }) {
  if (row.closed === null) return <StatusBadge status={row.state} />;
  const code = row.code === null ? "" : ` ${row.code}`;
  return <Badge title={`why it ended: ${row.closed}`}>{`closed: ${row.closed}${code}`}</Badge>;
}

/** A number that should be 0. */
export function Bad({ count, what }: { count: number; what: string }) {
  return count === 0 ? "0" : <Badge tone="warn">{`${count} ${what}`}</Badge>;
}

export const COLUMNS: readonly Column<HostRow>[] = [
  { key: "name", head: "Host", width: { grow: 1, least: 7 }, sortBy: ({ name }) => name, cell: (row) => (row.name === null ? "not registered" : `${row.name} ${row.version ?? ""}`) },
  { key: "state", head: "State", width: { grow: 1, least: 8 }, sortBy: ({ state }) => state, cell: (row) => <HostState row={row} /> },
  { key: "id", head: "Label", width: { fit: [2.5, 5] }, sortBy: ({ id }) => id, cell: (row) => <code>{row.id}</code> },
  { key: "tools", head: "Tools", width: { fit: [2.5, 5] }, align: "end", from: 30, sortBy: ({ tools }) => tools.length, cell: (row) => row.tools.length },
  { key: "opened", head: "Connected", width: { fit: [4, 9] }, from: 40, sortBy: ({ opened_at: at }) => at, cell: (row) => <Time at={row.opened_at} /> },
  { key: "last", head: "Last message", width: "6rem", from: 48, sortBy: ({ last_at: at }) => at, cell: (row) => <Time at={row.last_at} look="ago" /> },
  { key: "running", head: "In flight", width: { fit: [3, 5] }, align: "end", from: 36, sortBy: (row) => row.in_flight, cell: (row) => row.in_flight },
  { key: "dispatched", head: "Dispatched", width: { fit: [3, 6] }, align: "end", from: 56, sortBy: (row) => row.dispatched, cell: (row) => row.dispatched },
  { key: "failed", head: "Failed", width: { fit: [3, 5] }, align: "end", from: 60, sortBy: (row) => row.failed, cell: (row) => row.failed },
  { key: "expired", head: "Timed out", width: { fit: [3, 6] }, align: "end", from: 64, sortBy: (row) => row.expired, cell: (row) => row.expired },
  { key: "late", head: "Late messages", width: { fit: [4, 8] }, align: "end", from: 72, sortBy: (row) => row.late, cell: (row) => <Bad count={row.late} what="late" /> },
  { key: "misuse", head: "Violations", width: { fit: [4, 8] }, align: "end", from: 72, sortBy: (row) => row.misuse, cell: (row) => <Bad count={row.misuse} what="noted" /> },
];
