import type { KeyboardEvent } from "react";
import styles from "./data-table.module.css";
import type { Column, Sort, useColumns } from "./grid-columns";

interface GridHeadProps<Row> {
  columns: readonly Column<Row>[];
  table: ReturnType<typeof useColumns<Row>>["table"];
  sort: Sort | null;
  onSort: (key: string) => void;
}

// what Alt and an arrow change the width of a column by, in pixels
const STEP = 16;

/** The heads of the columns: they sort, and their edges make the columns wider and narrower. */
export function GridHead<Row>({ columns, table, sort, onSort }: GridHeadProps<Row>) {
  const headers = new Map(table.getHeaderGroups()[0]?.headers.map((header) => [header.id, header]));
  return (
    <div className={styles["head"]} role="rowgroup">
      <div className={styles["line"]} role="row" aria-rowindex={1}>
        {columns.map(({ key, head, title, axis, align, width, sortBy }) => {
          const order = sort?.id === key ? (sort.desc ? "descending" : "ascending") : undefined;
          const fitted = typeof width === "object" && "fit" in width && { "data-fit": key };
          // a column without a size of its own begins with the one that it has
          const begin = (element: Element) => {
            const cell = element.closest("[role=columnheader]");
            if (cell !== null) table.setColumnSizing((sizes) => ({ [key]: Math.round(cell.getBoundingClientRect().width), ...sizes }));
          };
          const resize = (event: KeyboardEvent) => {
            const step = event.altKey ? new Map(Object.entries({ ArrowLeft: -STEP, ArrowRight: STEP })).get(event.key) : undefined;
            if (step === undefined) return;
            event.preventDefault();
            begin(event.currentTarget);
            table.setColumnSizing((sizes) => ({ ...sizes, [key]: Math.max(2 * STEP, (sizes[key] ?? 0) + step) }));
          };
          return (
            <div
              key={key}
              role="columnheader"
              aria-sort={order}
              className={`${styles["cell"]} ${align === "end" ? styles["end"] : ""}`}
              title={title}
            >
              {sortBy === undefined ? (
                <span className={styles["text"]} {...fitted}>
                  {head}
                </span>
              ) : (
                <button type="button" className={`${styles["text"]} ${styles["sort"]}`} aria-keyshortcuts="Alt+ArrowLeft Alt+ArrowRight" onClick={() => onSort(key)} onKeyDown={resize} {...fitted}>
                  {head}
                  <span aria-hidden="true">{order === undefined ? "" : order === "ascending" ? " ↑" : " ↓"}</span>
                </button>
              )}
              {axis}
              {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- the keyboard has Alt and the arrows on the head */}
              <span
                className={styles["edge"]}
                aria-hidden="true"
                onMouseDown={(event) => {
                  begin(event.currentTarget);
                  headers.get(key)?.getResizeHandler()(event);
                }}
                onTouchStart={(event) => {
                  begin(event.currentTarget);
                  headers.get(key)?.getResizeHandler()(event);
                }}
                onDoubleClick={() => table.getColumn(key)?.resetSize()}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}
