import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, type RefObject, useLayoutEffect, useMemo, useRef, useState } from "react";
import styles from "./data-table.module.css";
import { cellClass, type Column, GridHead, type Sort, sorted, useColumns, useTracks } from "./grid-columns";
import { usePrinting, useWidth } from "./window";

interface DataTableProps<Row> {
  label: string;
  /** Cells are made again when these, or the row, are others; what else a cell depends on it must take from a context. */
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** The key of the selected row. */
  selected?: string | undefined;
  /** A click or Enter on a row. */
  onSelect?: (row: Row) => void;
  /** In pixels, one for all rows. */
  rowHeight?: number;
  /** What stands in a row in place of its cells, such as a heading; undefined for rows with cells. */
  across?: (row: Row) => ReactNode;
  /** Shown instead of the table when there are no rows. */
  empty?: ReactNode;
  /** For rows that unfold: the table is a tree. */
  tree?: Tree<Row>;
  /** Under which name the sizes of the columns, and the sorting, are kept in this browser. */
  remember?: string;
  /** For rows that their owner sorts: by what, and how to change that. */
  sort?: Sort | null;
  onSort?: (sort: Sort | null) => void;
  /** When a row came, in any unit: one that came after the table was opened is marked for a moment. */
  cameAt?: (row: Row) => number;
  /** The rows in view, by their places. */
  onView?: (first: number, last: number) => void;
}

/** How the rows of a tree stand: those below a row follow it in `rows` as long as it is open. */
export interface Tree<Row> {
  /** From 1. */
  level: (row: Row) => number;
  /** Undefined for a row with nothing below it. */
  isOpen: (row: Row) => boolean | undefined;
  /** The right arrow opens, the left one closes. */
  onToggle: (row: Row) => void;
}

// beyond this many rows the place is given up: looking for it must stay quick
const FAR = 5000;

/** The box that scrolls. It keeps the rows in view in place when others come or go above, unless its top is in view. */
function useAnchoredBox(keyAt: (index: number) => string | undefined, rowHeight: number) {
  const box = useRef<HTMLDivElement>(null);
  const previous = useRef<(index: number) => string | undefined>(keyAt);
  useLayoutEffect(() => {
    const before = previous.current;
    previous.current = keyAt;
    if (box.current === null || box.current.scrollTop === 0) return;
    const index = Math.floor(box.current.scrollTop / rowHeight);
    const key = before(index);
    if (key === undefined || keyAt(index) === key) return;
    for (let step = 1; step < FAR; step += 1) {
      const found = [index + step, index - step].find((each) => each >= 0 && keyAt(each) === key);
      if (found === undefined) continue;
      box.current.scrollTop += (found - index) * rowHeight;
      return;
    }
  });
  return box;
}

/** The marks of rows that are later than all that the table was opened with: each has its mark until that has faded. */
function useNewRows<Row>(rows: readonly Row[], cameAt: ((row: Row) => number) | undefined) {
  const [known, setKnown] = useState<number | null>(null);
  // what is there first, when the answer of the server has come, is not new
  if (known === null && cameAt !== undefined && rows.length > 0) setKnown(rows.reduce((latest, row) => Math.max(latest, cameAt(row)), Number.NEGATIVE_INFINITY));
  return (row: Row) => {
    const at = cameAt?.(row);
    if (at === undefined || known === null || at <= known) return { mark: "" };
    return { mark: styles["new"], onAnimationEnd: () => setKnown((latest) => Math.max(latest ?? at, at)) };
  };
}

interface Drawn {
  box: RefObject<HTMLElement | null>;
  count: number;
  rowHeight: number;
  /** The row in the tab order. */
  current: number;
  /** On paper nobody scrolls. */
  all: boolean;
}

/** Which rows exist: those in view, and always the one in the tab order, or the keyboard would lose its place by scrolling. */
function useDrawnRows({ box, count, rowHeight, current, all }: Drawn) {
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 4,
    rangeExtractor: (range) => {
      if (all) return Array.from({ length: Math.min(count, PRINTED) }, (_, index) => index);
      const drawn = new Set([current, ...defaultRangeExtractor(range)]);
      return [...drawn].filter((index) => index < count).toSorted((a, b) => a - b);
    },
  });
  // it keeps the places of the rows until it is told that they have another height
  useLayoutEffect(() => virtual.measure(), [virtual, rowHeight]);
  return virtual;
}

/** Which row an arrow key and its like lead to; undefined for other keys. */
export function target(key: string, from: number, count: number, page: number): number | undefined {
  const steps = new Map(Object.entries({ ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count }));
  const step = steps.get(key);
  return step === undefined ? undefined : Math.max(0, Math.min(count - 1, from + step));
}

/** Whether a key opens or closes a row of a tree that is open, closed, or (undefined) neither. */
function togglesWith(key: string, open: boolean | undefined): boolean {
  return (key === "ArrowRight" && open === false) || (key === "ArrowLeft" && open === true);
}

// some fifty pages; more nobody means to print
const PRINTED = 2_000;
const REM = 16;

/**
 * A table of any number of rows, of which only those in view exist, and on paper the first of all. It fills its parent, which must be a flex column.
 *
 * One row is in the tab order; arrows, Page, Home and End move from it, Enter selects; in a tree, left and right fold and unfold. Heads sort where
 * their column can be sorted by; with Alt and an arrow, or by their edge, they make the column wider and narrower.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rowKey, selected, onSelect, rowHeight = 32, empty, tree, across, remember, sort: given, onSort, cameAt, onView } = props;
  const [active, setActive] = useState<string | null>(null);
  // the row that gets the focus as soon as it exists
  const wanted = useRef<string | null>(null);
  const [width, measure] = useWidth();
  const { table, shown, sort, toggle, sizes } = useColumns({ columns, remember, room: width / REM, ...(given !== undefined && { sort: given }), ...(onSort && { onSort }) });
  const rows = useMemo(() => (onSort === undefined ? sorted(props.rows, columns, sort) : props.rows), [props.rows, columns, sort, onSort]);
  const keyAt = (index: number) => {
    const row = rows[index];
    return row === undefined ? undefined : rowKey(row);
  };
  const box = useAnchoredBox(keyAt, rowHeight);
  const printing = usePrinting();
  const newness = useNewRows(props.rows, cameAt);
  const tabbed = active ?? selected;
  const current = useMemo(() => (tabbed === undefined ? 0 : Math.max(0, rows.findIndex((row) => rowKey(row) === tabbed))), [rows, rowKey, tabbed]);
  const virtual = useDrawnRows({ box, count: rows.length, rowHeight, current, all: printing });
  const [first, last] = [virtual.range?.startIndex ?? 0, virtual.range?.endIndex ?? 0];
  useLayoutEffect(() => onView?.(first, last), [onView, first, last]);
  const style = useTracks(box, shown, sizes, `${first} ${last} ${width} ${rows.length}`);
  const move = (event: KeyboardEvent, index: number) => {
    const row = rows[index];
    if (event.key === "Enter" && row !== undefined && event.target === event.currentTarget) onSelect?.(row);
    if (row !== undefined && togglesWith(event.key, tree?.isOpen(row))) {
      event.preventDefault();
      tree?.onToggle(row);
    }
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / rowHeight) - 2);
    const next = target(event.key, index, rows.length, page);
    const key = next === undefined ? undefined : keyAt(next);
    if (next === undefined || key === undefined) return;
    event.preventDefault();
    wanted.current = key;
    setActive(key);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const focusWanted = (key: string, element: HTMLElement | null) => {
    if (element === null || wanted.current !== key) return;
    wanted.current = null;
    element.focus({ preventScroll: true });
  };
  const choose = (row: Row) => {
    setActive(rowKey(row));
    onSelect?.(row);
  };
  if (rows.length === 0 && empty !== undefined) return empty;
  return (
    <div ref={box} className={styles["table"]} role={tree === undefined ? "grid" : "treegrid"} aria-label={label} aria-rowcount={rows.length + 1} style={style}>
      <GridHead columns={shown} table={table} sort={sort} onSort={toggle} />
      <div ref={measure} className={styles["rows"]} role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const key = rowKey(row);
          const instead = across?.(row);
          const { mark, ...fading } = newness(row);
          return (
            <div
              key={key}
              ref={(element) => focusWanted(key, element)}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={key === selected}
              aria-level={tree?.level(row)}
              aria-expanded={tree?.isOpen(row)}
              tabIndex={index === current ? 0 : -1}
              className={`${styles["row"]} ${styles["line"]} ${onSelect ? styles["open"] : ""} ${mark}`}
              {...fading}
              style={{ height: rowHeight, transform: `translateY(${start}px)` }}
              onClick={() => choose(row)}
              onKeyDown={(event) => move(event, index)}
            >
              {instead === undefined ? (
                <Cells columns={shown} row={row} />
              ) : (
                <div role="gridcell" aria-colspan={shown.length} className={styles["across"]}>
                  {instead}
                </div>
              )}
            </div>
          );
        })}
        {printing && rows.length > PRINTED && <LeftOut all={rows.length} columns={shown.length} />}
      </div>
    </div>
  );
}

/** The last line on paper that has not all rows. */
function LeftOut({ all, columns }: { all: number; columns: number }) {
  return (
    <div role="row" className={`${styles["row"]} ${styles["line"]}`}>
      <div role="gridcell" aria-colspan={columns} className={styles["across"]}>
        {PRINTED.toLocaleString("en")} of {all.toLocaleString("en")} rows are shown
      </div>
    </div>
  );
}

interface CellsProps<Row> {
  columns: readonly Column<Row>[];
  row: Row;
}

// most rows are the same when a table scrolls or gets new rows, and what is in them is most of the work
const Cells = memo(<Row,>({ columns, row }: CellsProps<Row>) =>
  columns.map((column) => (
    <div key={column.key} role="gridcell" className={cellClass(column)} {...(typeof column.width === "object" && "fit" in column.width && { "data-fit": column.key })}>
      {column.cell(row)}
    </div>
  )),
) as <Row>(props: CellsProps<Row>) => ReactNode;
