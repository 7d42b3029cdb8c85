import { useMemo } from "react";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import type { Column } from "~/ui/grid-columns";
import type { Picture } from "~/widgets/ladder/picture";
import { type Row, rowsOf } from "~/widgets/ladder/rows";
import type { Step } from "~/widgets/ladder/steps";
import { hasText, labelOf, timeOf } from "~/widgets/ladder/words";

const says = (row: Row) => <code>{labelOf(row).rest}</code>;

interface StepTableProps {
  label: string;
  picture: Picture;
  origin: Step | undefined;
  /** Only steps with it are listed. */
  text: string;
  selected: string;
  onOpen: (step: Step) => void;
}

/** The same as the picture, in words, with nothing folded. */
export function StepTable({ label, picture, origin, text, selected, onOpen }: StepTableProps) {
  const { steps, names } = picture;
  const rows = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const all = rowsOf(
      steps.map((step) => ({ ...step, fold: null })),
      new Set(),
    );
    return wanted === "" ? all : all.filter((row) => hasText(row, wanted));
  }, [steps, text]);
  const columns = useMemo((): readonly Column<Row>[] => {
    const name = (lane: Step["from"]) => names.get(lane) ?? lane;
    return [
      { key: "time", head: "When", width: "6.5rem", align: "end", cell: (row) => timeOf(row, origin) },
      { key: "from", head: "From", width: "minmax(6rem, 10rem)", cell: ({ steps: [step] }) => name(step.from) },
      { key: "to", head: "To", width: "minmax(6rem, 10rem)", cell: ({ steps: [step] }) => (step.from === step.to ? "–" : name(step.to)) },
      { key: "what", head: "What", width: "minmax(10rem, 16rem)", cell: (row) => labelOf(row).title },
      { key: "rest", head: "Says", width: "minmax(14rem, 1fr)", cell: says },
    ];
  }, [names, origin]);
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={rows}
      rowKey={(row) => row.key}
      selected={selected}
      onSelect={(row) => onOpen(row.steps[0])}
      empty={<EmptyState title="No step has this text" />}
    />
  );
}
