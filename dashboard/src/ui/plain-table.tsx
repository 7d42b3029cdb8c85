import type { ReactNode } from "react";
import styles from "./plain-table.module.css";

export interface PlainColumn<Row> {
  key: string;
  head: string;
  cell: (row: Row) => ReactNode;
  align?: "end";
  /** `fit`: on one line, and no wider than that. `long`: a line may end within a word, as addresses and JSON need it. A number: so many per cent of the table. */
  width?: "fit" | "long" | number;
}

interface PlainTableProps<Row> {
  caption: string;
  /** The caption is only for those who hear the page, as a heading says the same. */
  hidden?: boolean;
  /** The first column names the row. */
  columns: readonly PlainColumn<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
}

// more columns than these have no room on a phone, and more than those none beside something else
const NARROW = 2;
const MANY = 5;

/** A table of few rows, to read; cells may have several lines. Where there is little room each row of a wide one is a block. */
export function PlainTable<Row>({ caption, hidden = false, columns, rows, rowKey }: PlainTableProps<Row>) {
  const width = columns.length > MANY ? `${styles["blocks"]} ${styles["many"]}` : columns.length > NARROW ? styles["blocks"] : "";
  return (
    <div className={styles["box"]}>
      <table className={`${styles["table"]} ${width}`}>
        <caption className={hidden ? "unseen" : undefined}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={classOf(column)} style={typeof column.width === "number" ? { width: `${column.width}%` } : undefined}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.key} data-head={column.head} className={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf<Row>({ align, width }: PlainColumn<Row>): string | undefined {
  const names = [align === "end" && styles["end"], width === "fit" && styles["fit"], width === "long" && styles["long"]].filter(Boolean);
  return names.length === 0 ? undefined : names.join(" ");
}
