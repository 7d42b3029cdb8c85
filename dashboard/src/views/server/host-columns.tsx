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
  { key: "name", head: "Host", width: "minmax(7rem, 16rem)", cell: (row) => (row.name === null ? "not registered" : `${row.name} ${row.version ?? ""}`) },
  { key: "state", head: "State", width: "minmax(8rem, 1fr)", cell: (row) => <HostState row={row} /> },
  { key: "id", head: "Label", width: "4rem", cell: (row) => <code>{row.id}</code> },
  { key: "tools", head: "Tools", width: "3.6rem", align: "end", cell: (row) => row.tools.length },
  { key: "opened", head: "Connected", width: "6rem", cell: (row) => <Time at={row.opened_at} /> },
  { key: "last", head: "Last message", width: "6rem", cell: (row) => <Time at={row.last_at} look="ago" /> },
  { key: "running", head: "In flight", width: "4.6rem", align: "end", cell: (row) => row.in_flight },
  { key: "dispatched", head: "Dispatched", width: "5.5rem", align: "end", cell: (row) => row.dispatched },
  { key: "failed", head: "Failed", width: "4.2rem", align: "end", cell: (row) => row.failed },
  { key: "expired", head: "Timed out", width: "5rem", align: "end", cell: (row) => row.expired },
  { key: "late", head: "Late messages", width: "6.5rem", align: "end", cell: (row) => <Bad count={row.late} what="late" /> },
  { key: "misuse", head: "Violations", width: "5.5rem", align: "end", cell: (row) => <Bad count={row.misuse} what="noted" /> },
];

/** Those that fit beside the detail of one. */
export const FEW_COLUMNS = COLUMNS.filter(({ key }) => ["id", "name", "state", "tools", "running"].includes(key));
