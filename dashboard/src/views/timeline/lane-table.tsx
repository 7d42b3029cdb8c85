import { type Column, DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { Time } from "~/ui/time";
import { StatusBadge } from "~/widgets/badges";
import type { Lane } from "./lane";
import { cancellation, lasting, messages } from "./words";

interface LaneTableProps {
  lanes: readonly Lane[];
  nameOf: (session: string | null) => string;
  now: number;
  selected: string;
  onOpen: (lane: Lane) => void;
}

/** The same as the picture, in words. */
export function LaneTable({ lanes, nameOf, now, selected, onOpen }: LaneTableProps) {
  const columns: readonly Column<Lane>[] = [
    { key: "kind", head: "Kind", width: "4rem", cell: (lane) => lane.kind },
    { key: "name", head: "Name", width: "minmax(7rem, 1fr)", cell: (lane) => lane.name },
    { key: "id", head: "Id", width: "6rem", cell: codeOf },
    { key: "client", head: "Client", width: "minmax(7rem, 1fr)", cell: (lane) => nameOf(lane.session) },
    { key: "began", head: "Began", width: "7rem", cell: began },
    { key: "took", head: "Took", width: "7rem", align: "end", cell: (lane) => lasting(lane, now) },
    { key: "state", head: "State", width: "8rem", cell: stateBadge },
    { key: "messages", head: "Messages", width: "minmax(7rem, 1fr)", cell: messages },
    { key: "cancelled", head: "Cancelled", width: "minmax(7rem, 1.5fr)", cell: (lane) => cancellation(lane) || "no" },
  ];
  return (
    <DataTable
      label="Calls, tasks and streams"
      columns={columns}
      rows={lanes}
      rowKey={(lane) => lane.key}
      selected={selected}
      onSelect={onOpen}
      empty={<EmptyState title="Nothing in this span" />}
    />
  );
}

const codeOf = (lane: Lane) => <code>{lane.id}</code>;
const began = (lane: Lane) => <Time at={lane.from} />;
const stateBadge = (lane: Lane) => <StatusBadge status={lane.state} />;
