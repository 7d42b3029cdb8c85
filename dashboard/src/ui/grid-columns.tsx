import { type ColumnDef, columnResizingFeature, columnSizingFeature, rowSortingFeature, tableFeatures, useTable } from "@tanstack/react-table";
import { type CSSProperties, type KeyboardEvent, type ReactNode, type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import styles from "./data-table.module.css";

/** As wide as its content, from so many rem up to so many. */
interface Fit {
  fit: readonly [least: number, most: number];
}

/** A share of the room that is left, and so many rem at least. */
interface Grow {
  grow: number;
  least: number;
}

export interface Column<Row> {
  key: string;
  head: string;
  /** What the head means, for a tooltip. */
  title?: string;
  /** Stands below the name in the head. */
  axis?: ReactNode;
  /** One line; what does not fit is cut. */
  cell: (row: Row) => ReactNode;
  /** Or a CSS grid track: `6rem`. */
  width: Fit | Grow | string;
  align?: "end";
  /** By what rows are sorted here; undefined for a row that is left out then. Without it there is no sorting. */
  sortBy?: (row: Row) => string | number | null | undefined;
  /** It is shown where the table has so many rem of width. */
  from?: number;
  /** False for a drawing that paper has no room for. */
  paper?: boolean;
}

export interface Sort {
  id: string;
  desc: boolean;
}

const FEATURES = tableFeatures({ columnSizingFeature, columnResizingFeature, rowSortingFeature });

/** What a person has chosen for a table. */
interface Chosen {
  columnSizing: Record<string, number>;
  sorting: Sort[];
}

const NOTHING: Chosen = { columnSizing: {}, sorting: [] };

function remembered(name: string | undefined): Chosen {
  if (name === undefined) return NOTHING;
  try {
    return { ...NOTHING, ...(JSON.parse(localStorage.getItem(`table ${name}`) ?? "{}") as Partial<Chosen>) };
  } catch {
    // another program may have written there, and a browser may keep nothing
    return NOTHING;
  }
}

interface Options<Row> {
  columns: readonly Column<Row>[];
  /** Under which name sizes and sorting are kept in this browser. */
  remember: string | undefined;
  /** The width of the table in rem; 0 while it is not known. */
  room: number;
  /** Instead of sorting here: what the owner of the rows sorts by, and how to change that. */
  sort?: Sort | null;
  onSort?: (sort: Sort | null) => void;
}

/** The columns that there is room for, with the sizes and the sorting that a person has chosen. */
export function useColumns<Row>({ columns, remember, room, sort, onSort }: Options<Row>) {
  const first = useMemo(() => remembered(remember), [remember]);
  const shown = useMemo(() => columns.filter(({ from = 0 }) => room === 0 || room >= from), [columns, room]);
  const definitions = useMemo(
    () => shown.map(({ key, sortBy }): ColumnDef<typeof FEATURES, never> => ({ id: key, minSize: 32, enableSorting: sortBy !== undefined, accessorFn: () => null, sortDescFirst: false })),
    [shown],
  );
  const table = useTable(
    {
      features: FEATURES,
      columns: definitions,
      data: NO_ROWS,
      initialState: { ...first, ...(sort !== undefined && { sorting: sort === null ? [] : [sort] }) },
      columnResizeMode: "onChange",
      manualSorting: true,
      enableMultiSort: false,
    },
    ({ columnSizing, sorting }) => ({ columnSizing, sorting }),
  );
  const { columnSizing, sorting } = table.state;
  useEffect(() => {
    if (remember !== undefined) localStorage.setItem(`table ${remember}`, JSON.stringify({ columnSizing, ...(onSort === undefined && { sorting }) }));
  }, [remember, columnSizing, sorting, onSort]);
  const own = onSort === undefined ? (sorting[0] ?? null) : (sort ?? null);
  const toggle = (key: string) => {
    const next = own?.id !== key ? { id: key, desc: false } : own.desc ? null : { id: key, desc: true };
    if (onSort === undefined) table.setSorting(next === null ? [] : [next]);
    else onSort(next);
  };
  return { table, shown, sort: own, toggle, sizes: columnSizing };
}

const NO_ROWS: never[] = [];

/** The rows in the order of a column, those without a value last; all that a column does not sort are left out. */
export function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: Sort | null): readonly Row[] {
  const by = sort === null ? undefined : columns.find(({ key }) => key === sort.id)?.sortBy;
  if (by === undefined || sort === null) return rows;
  const found = rows.flatMap((row) => {
    const value = by(row);
    return value === undefined ? [] : [{ row, value }];
  });
  const sign = sort.desc ? -1 : 1;
  return found.toSorted((a, b) => (a.value === null || b.value === null ? Number(a.value === null) - Number(b.value === null) : sign * compared(a.value, b.value))).map(({ row }) => row);
}

const compared = (a: string | number, b: string | number) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));

/** The tracks of the grid. Columns that fit their content grow with what comes into view, and do not shrink again. */
export function useTracks<Row>(box: RefObject<HTMLElement | null>, shown: readonly Column<Row>[], sizes: Readonly<Record<string, number>>, seen: unknown): CSSProperties {
  const fits = useRef(new Map<string, number>());
  const [fonts, setFonts] = useState(0);
  const measured = useRef(fonts);
  useEffect(() => {
    // a font is asked for by the first text that is drawn with it: before, none is loading
    const measure = () => setFonts((before) => before + 1);
    document.fonts.addEventListener("loadingdone", measure);
    return () => document.fonts.removeEventListener("loadingdone", measure);
  }, []);
  const tracks = () => shown.map((column) => trackOf(column, sizes[column.key], fits.current.get(column.key))).join(" ");
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    // with another font all widths are others: one that is a part of a pixel more than before would not show
    if (fonts !== measured.current) {
      measured.current = fonts;
      fits.current.clear();
      element.style.setProperty("--columns", tracks());
    }
    let grown = false;
    for (const cell of element.querySelectorAll<HTMLElement>("[data-fit]")) {
      const key = cell.dataset["fit"] ?? "";
      // a cell that a person made wide is as wide as that, whatever its content
      if (sizes[key] !== undefined || cell.scrollWidth <= (fits.current.get(key) ?? 0)) continue;
      // a width is told in whole pixels, and a part of one more cuts a letter
      fits.current.set(key, cell.scrollWidth + 1);
      grown = true;
    }
    if (grown) element.style.setProperty("--columns", tracks());
    // with what is seen: other cells; with the font: other widths
    // oxlint-disable-next-line react/exhaustive-deps
  }, [box, shown, sizes, seen, fonts]);
  return { "--columns": tracks(), "--count": shown.filter(({ paper = true }) => paper).length } as CSSProperties;
}

function trackOf<Row>({ width }: Column<Row>, size: number | undefined, fitted = 0): string {
  if (size !== undefined) return `${size}px`;
  if (typeof width === "string") return width;
  if ("grow" in width) return `minmax(${width.least}rem, ${width.grow}fr)`;
  const [least, most] = width.fit;
  return `clamp(${least}rem, ${fitted}px, ${most}rem)`;
}

export function cellClass<Row>({ align, width, paper = true }: Column<Row>): string {
  const grows = typeof width === "object" && "grow" in width;
  return [styles["cell"], align === "end" && styles["end"], grows && styles["grow"], !paper && styles["screen"]].filter(Boolean).join(" ");
}

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
        {columns.map((column) => {
          const { key, head, title, axis, width, sortBy } = column;
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
              className={cellClass(column)}
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
