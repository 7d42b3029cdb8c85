import type { ReactNode } from "react";
import styles from "./plain-table.module.css";

export interface PlainColumn<Row> {
  key: string;
  head: string;
  cell: (row: Row) => ReactNode;
  align?: "end";
}

interface PlainTableProps<Row> {
  caption: string;
  /** The first column names the row. */
  columns: readonly PlainColumn<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
}

// more than these have no room on a phone
const NARROW = 2;

/** A table of few rows, to read; cells may have several lines. On a phone each row of a wide one is a block. */
export function PlainTable<Row>({ caption, columns, rows, rowKey }: PlainTableProps<Row>) {
  return (
    <table className={`${styles["table"]} ${columns.length > NARROW ? styles["wide"] : ""}`}>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.key} scope="col" className={column.align && styles["end"]}>
              {column.head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={rowKey(row)}>
            {columns.map((column) => (
              <td key={column.key} data-head={column.head} className={column.align && styles["end"]}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
