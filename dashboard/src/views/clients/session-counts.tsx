import { type PlainColumn, PlainTable } from "~/ui/plain-table";

interface CountsProps {
  caption: string;
  head: string;
  counts: Readonly<Record<string, number>>;
}

type Line = [name: string, count: number];

/** How often each name came, the most frequent first; nothing when there are none. */
export function Counts({ caption, head, counts }: CountsProps) {
  const lines: Line[] = Object.entries(counts).toSorted((a, b) => b[1] - a[1]);
  if (lines.length === 0) return null;
  const columns: readonly PlainColumn<Line>[] = [
    { key: "name", head, cell: name },
    { key: "count", head: "Times", align: "end", cell: ([, count]) => count },
  ];
  return <PlainTable caption={caption} columns={columns} rows={lines} rowKey={([each]) => each} />;
}

const name = ([each]: Line) => <code>{each}</code>;
