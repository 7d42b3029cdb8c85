import { type ReactNode, useState } from "react";
import { Badge } from "~/ui/badge";
import { Button } from "~/ui/button";
import styles from "./calls.module.css";
import type { Mark } from "./json-diff";

interface Line {
  name: string;
  a: ReactNode;
  b: ReactNode;
  /** null: the values tell the calls apart and are not to be compared. */
  mark: Mark | null;
}

interface CompareTableProps {
  label: string;
  /** What the lines are named by. */
  head: string;
  lines: readonly Line[];
  /** Leave out what is the same. */
  only: boolean;
}

// enough for nearly all results; thousands of lines would make the page slow
const SHOWN = 300;

/** Named values of A and B beside each other. */
export function CompareTable({ label, head, lines, only }: CompareTableProps) {
  const [all, setAll] = useState(false);
  const wanted = only ? lines.filter((line) => line.mark !== "same" && line.mark !== null) : lines;
  const shown = all ? wanted : wanted.slice(0, SHOWN);
  if (shown.length === 0) return <p className={styles["quiet"]}>No differences in what this table compares.</p>;
  return (
    <>
      <Lines label={label} head={head} lines={shown} />
      {shown.length < wanted.length && (
        <Button small onClick={() => setAll(true)}>
          {wanted.length - shown.length} more
        </Button>
      )}
    </>
  );
}

function Lines({ label, head, lines }: Omit<CompareTableProps, "only">) {
  return (
    <table className={styles["compare"]} aria-label={label}>
      <thead>
        <tr>
          <th scope="col" className={styles["name"]}>
            {head}
          </th>
          <th scope="col">A</th>
          <th scope="col">B</th>
          <th scope="col" className={styles["mark"]}>
            Compared
          </th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ name, a, b, mark }) => (
          <tr key={name} data-differs={mark !== null && mark !== "same" ? "" : undefined}>
            <th scope="row">{name}</th>
            <td>{a}</td>
            <td>{b}</td>
            <td>{mark !== null && <MarkBadge mark={mark} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function MarkBadge({ mark }: { mark: Mark }) {
  return mark === "same" ? <span className={styles["quiet"]}>same</span> : <Badge tone="warn">≠ {mark}</Badge>;
}
