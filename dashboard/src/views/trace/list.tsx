import { type ReactNode, type RefObject, type UIEvent, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useSavedFile } from "~/protocol/client";
import type { Gap } from "~/trace/entry";
import { type Traced, useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { Button } from "~/ui/buttons";
import { DataTable } from "~/ui/data-table";
import { Select } from "~/ui/fields";
import { type Column, type Sort, sorted } from "~/ui/grid-columns";
import { EmptyState } from "~/ui/panel";
import { useNarrow } from "~/ui/window";
import { counted } from "~/words/text";
import type { Controls } from "./controls";
import { entryCard, entryColumns } from "./entry-columns";
import { card, requestColumns } from "./request-columns";
import { chosenBy, isOpen, levelOf, type Row } from "./rows";
import styles from "./trace.module.css";
import { placeOf, type TraceUrl } from "./url";
import { ScaleContext, useScale } from "./waterfall";

const ROW_HEIGHT = 28;
// two lines of text
const TALL_ROW = 46;

interface ListProps {
  controls: Controls;
  /** As they stand, with those below open ones. */
  rows: readonly Row[];
  traced: Traced;
  url: TraceUrl;
  open: ReadonlySet<string>;
  onToggle: (row: Row) => void;
  follow: boolean;
  setFollow: (follow: boolean) => void;
  onOpen: (run: string, seq: number) => void;
}

/** The list of requests or entries. It holds its place while new ones come, unless its newest end is followed. */
export function List({ controls, rows: inOrder, traced, url, open, onToggle, follow, setFollow, onOpen }: ListProps) {
  const { loader } = traced;
  const { view, order } = url;
  const [trace] = useState(() => loader.trace);
  const phone = useNarrow("40rem");
  const ended = useEnded();
  const columns = useMemo(() => (view === "all" ? entryColumns(trace, onOpen) : requestColumns({ ended, open, onToggle })), [view, trace, ended, open, onToggle, onOpen]);
  const [sort, onSort, rows] = useSort(inOrder, columns, url);
  const selected = useMemo(() => selectedKey(rows, traced, url.at), [rows, traced, url.at]);
  const rowHeight = phone ? TALL_ROW : ROW_HEIGHT;
  const { box, onScroll, unseen } = useScrolling({ rows, rowHeight, order, selected, follow, setFollow });
  useFilledBox(box, rows.length, url.range === null, traced);
  const [scale, onView] = useScale(rows, url.range);
  const across = useCallback((row: Row) => acrossOf(row, traced), [traced]);
  const tree = useMemo(() => ({ level: levelOf, isOpen: (row: Row) => isOpen(row, open), onToggle }), [open, onToggle]);
  const onSelect = useCallback(
    (row: Row) => {
      const chosen = chosenBy(row);
      if (chosen !== null) onOpen(chosen.run, chosen.seq);
      else if (row.type === "progress" || row.type === "repeat") onToggle(row);
    },
    [onOpen, onToggle],
  );
  if (rows.every((row) => row.type === "older" || row.type === "gap")) return <NothingPasses traced={traced} url={url} />;
  return (
    <div ref={box} className={styles["list"]} onScrollCapture={onScroll}>
      {unseen !== null && !follow && (
        <div className={order === "newest" ? styles["pill"] : `${styles["pill"]} ${styles["below"]}`}>
          <Button look="primary" onClick={() => setFollow(true)}>
            {order === "newest" ? "↑" : "↓"} {unseen}
          </Button>
        </div>
      )}
      {((phone && !controls.hidden) || sort.id !== "time") && (
        <div className="strip row">
          {phone && !controls.hidden && <Select label="Sort by" options={orders(columns)} value={nameOf(sort)} onChange={(value) => onSort(sortOf(value))} />}
          {sort.id !== "time" && (
            <>
              <span role="status">
                Sorted: the {view === "all" ? counted(rows.length, "entry", "entries") : counted(rows.filter((row) => levelOf(row) === 1).length, "request")} that this page has loaded.
              </span>
              <Older traced={traced} />
              {(!phone || controls.hidden) && (
                <Button small onClick={() => onSort(TIME)}>
                  By time again
                </Button>
              )}
            </>
          )}
        </div>
      )}
      <ScaleContext value={scale}>
        <DataTable
          key={view}
          label={`${view === "all" ? "Entries" : "Requests"}, ${sort.id === "time" ? `${order} first` : `by ${sort.id}`}`}
          remember={`trace ${view}`}
          columns={phone ? PHONE[view === "all" ? "all" : "requests"] : columns}
          rows={rows}
          rowKey={keyOf}
          selected={selected}
          onSelect={onSelect}
          across={across}
          rowHeight={rowHeight}
          sort={sort}
          onSort={onSort}
          onView={onView}
          {...(view === "requests" && { tree })}
        />
      </ScaleContext>
    </div>
  );
}

// one cell has all of a row where there is little room
const PHONE: Readonly<Record<"all" | "requests", readonly Column<Row>[]>> = {
  all: [{ key: "entry", head: "Entry", width: "minmax(0, 1fr)", cell: entryCard }],
  requests: [{ key: "request", head: "Request", width: "minmax(0, 1fr)", cell: card }],
};

const TIME: Sort = { id: "time", desc: false };

// a sorting as the value of a choice, `outcome` or `-time`, and back
const nameOf = ({ id, desc }: Sort) => `${desc ? "-" : ""}${id}`;
const sortOf = (value: string): Sort => ({ id: value.replace(/^-/, ""), desc: value.startsWith("-") });

/** What a list can be sorted by where no heads are shown that do it. */
const orders = (columns: readonly Column<Row>[]) => [
  { value: "time", label: "Time" },
  { value: "-time", label: "Time, the newest first" },
  ...columns.flatMap(({ key, head, sortBy }) => (sortBy === undefined || key === "time" ? [] : [{ value: key, label: head }])),
];

const keyOf = (row: Row) => row.key;

function acrossOf(row: Row, traced: Traced): ReactNode {
  if (row.type === "older") return <Older traced={traced} />;
  return row.type === "gap" ? <GapRow gap={row.gap} traced={traced} /> : undefined;
}

/** The order of time is in the address; any other sorting lasts as long as the list is shown. */
function useSort(rows: readonly Row[], columns: readonly Column<Row>[], { order, change }: TraceUrl): [Sort, (sort: Sort | null) => void, readonly Row[]] {
  const [other, setOther] = useState<Sort | null>(null);
  const onSort = useCallback(
    (next: Sort | null) => {
      setOther(next?.id === "time" ? null : next);
      if (next?.id === "time") change({ order: next.desc ? "newest" : "" });
    },
    [change],
  );
  const sort = other ?? { id: "time", desc: order === "newest" };
  return [sort, onSort, useMemo(() => sorted(rows, columns, other), [rows, columns, other])];
}

/** The key of the row that shows the selected entry: its own, or that of its exchange. */
function selectedKey(rows: readonly Row[], { run, loader }: Traced, at: string): string | undefined {
  const place = placeOf(at);
  if (place === null) return undefined;
  const of = place.run ?? run;
  const own = `${of}-${place.seq}`;
  if (rows.some(({ key }) => key === own)) return own;
  const exchange = loader.trace.entryOf(of, place.seq)?.view.exchange;
  return exchange === undefined ? own : `${of}-x${exchange}`;
}

const REASONS: Readonly<Record<Gap["reason"], string>> = {
  evicted: "pushed out of the log by newer ones; they cannot be loaded",
  skipped: "the log grew faster than this feed carries",
  restarted: "the server was started again; what came between is not known",
};

/** Which entries are missing, and what can be done about it. */
function GapRow({ gap: { key, reason, first, last, run: of }, gap, traced: { run, loading, loader } }: { gap: Gap; traced: Traced }) {
  return (
    <span className={`${styles["gap"]} row quiet`}>
      <Badge tone="warn">gap: {reason}</Badge>
      {reason === "skipped" && of === run && (
        <Button
          small
          disabled={loading.busy !== null}
          onClick={(event) => {
            event.stopPropagation();
            loader.fill(gap);
          }}
        >
          {loading.busy === key ? "Loading…" : "Load"}
        </Button>
      )}
      <span title={REASONS[reason]}>
        {first !== null && last !== null && `${last - first + 1} entries, #${first} to #${last}: `}
        {REASONS[reason]}
        {reason === "skipped" && of !== run && "; lost with that run of the server"}
      </span>
    </span>
  );
}

const ENDS: Readonly<Record<string, string>> = {
  beginning: "This is the beginning of the log.",
  evicted: "Older entries were pushed out of the log.",
  enough: "This page keeps no more than 30,000 entries; /api/events.ndjson has what the log keeps.",
};

/** The line at the oldest end: older history, as far as there is any; under a filter what else the log has of it. */
function Older({ traced: { run, first, loading, loader } }: { traced: Traced }): ReactNode {
  const { busy, error, found } = loading;
  if (found !== null) {
    if (found.next === null) return <span className={`${styles["gap"]} row quiet`}>Nothing older in the log passes the filter.</span>;
    return (
      <span className={`${styles["gap"]} row quiet`}>
        <Button small disabled={busy !== null} onClick={() => loader.more(run)}>
          {busy === "search" ? "Searching…" : "Search older"}
        </Button>
      </span>
    );
  }
  const end = (first ?? 1) <= 1 ? "beginning" : loading.end;
  return (
    <span className={`${styles["gap"]} row quiet`}>
      {end === null ? (
        <Button small disabled={busy !== null} onClick={() => loader.older(run, first ?? 1)}>
          {busy === "older" ? "Loading…" : "Load older"}
        </Button>
      ) : (
        <span>{ENDS[end]}</span>
      )}
      {error !== null && <span role="alert">Not loaded: {error}</span>}
    </span>
  );
}

/** Which rows are open, and how to change that. */
export function useOpenRows(): [ReadonlySet<string>, (row: Row) => void] {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback((row: Row) => setOpen((before) => (before.has(row.key) ? new Set([...before].filter((key) => key !== row.key)) : new Set([...before, row.key]))), []);
  return [open, toggle];
}

function NothingPasses({ traced, url }: { traced: Traced; url: TraceUrl }) {
  const { line, view, range, filter, change, setRange } = url;
  const { loading, loader, run, state } = traced;
  const saved = useSavedFile();
  const what = view === "all" ? "entries" : "requests";
  const clear = <Button onClick={() => filter("")}>Clear the filter</Button>;
  if (state === "failed") {
    return (
      <EmptyState title="The log could not be searched">
        <p role="alert">{loading.error}</p>
        <Button onClick={() => loader.again(run)}>Try again</Button> {line !== "" && clear}
      </EmptyState>
    );
  }
  if (state === "searching" || loading.busy === "search") return <EmptyState title="Searching the log">Nothing that this page has passes the filter.</EmptyState>;
  if (range !== null) {
    return (
      <EmptyState title={`No ${what} in this time`}>
        <Button onClick={() => setRange(null)}>Show all of the time</Button> {line !== "" && clear}
      </EmptyState>
    );
  }
  if (line === "") {
    return (
      <EmptyState title="This list is empty">
        {saved === null && <p>New {what} appear here as they come.</p>}
        {traced.first !== null && <Older traced={traced} />}
      </EmptyState>
    );
  }
  return (
    <EmptyState title={loading.found === null ? `No ${what} in the log passes the filter` : `None of the ${loading.found.total.toLocaleString("en")} ${what} in the log passes the filter`}>
      {saved === null && <p>New ones appear here when they pass it.</p>}
      {clear} {view === "requests" && <Button onClick={() => change({ view: "all" })}>Look at all entries</Button>}
    </EmptyState>
  );
}

interface Keyed {
  key: string;
}

interface Options {
  /** The rows as they stand. */
  rows: readonly Keyed[];
  rowHeight: number;
  order: "oldest" | "newest";
  selected: string | undefined;
  follow: boolean;
  setFollow: (follow: boolean) => void;
}

interface Scrolling {
  /** Around the table. */
  box: RefObject<HTMLDivElement | null>;
  onScroll: (event: UIEvent) => void;
  /** How many rows came in while the newest were out of view; null for none. */
  unseen: string | null;
}

/** Where a list stands: its newest end stays in view as long as it is followed, and the selected row is brought into view. */
function useScrolling({ rows, rowHeight, order, selected, follow, setFollow }: Options): Scrolling {
  const box = useRef<HTMLDivElement>(null);
  const newest = order === "newest" ? rows[0]?.key : rows.at(-1)?.key;
  // the newest row when the end of the list went out of view
  const [left, setLeft] = useState<string | undefined>();
  useLayoutEffect(() => {
    const grid = gridOf(box.current);
    if (follow && grid !== null && rows.length > 0) grid.scrollTop = order === "newest" ? 0 : grid.scrollHeight;
  }, [follow, order, rows]);
  const onScroll = (event: UIEvent) => {
    const { scrollTop, scrollHeight, clientHeight } = event.target as HTMLElement;
    const isAtEnd = order === "newest" ? scrollTop === 0 : scrollTop + clientHeight > scrollHeight - rowHeight;
    setFollow(isAtEnd);
    setLeft((before) => (isAtEnd ? undefined : (before ?? newest)));
  };
  const index = useMemo(() => (selected === undefined ? -1 : rows.findIndex((row) => row.key === selected)), [rows, selected]);
  const found = index !== -1;
  // only when another row is selected or the selected one appears, not each time that it moves
  const shown = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (!found) {
      shown.current = undefined;
    } else if (shown.current !== selected) {
      shown.current = selected;
      bringIntoView(gridOf(box.current), index, rowHeight);
    }
  }, [found, selected, index, rowHeight]);
  return { box, onScroll, unseen: useMemo(() => countUnseen(rows, order, left), [rows, order, left]) };
}

// pages of older entries that are loaded unasked: a long call may have thousands of messages
const UNASKED = 8;

/** Loads older entries until the list fills its box. */
function useFilledBox(box: RefObject<HTMLElement | null>, rows: number, whole: boolean, { run, first, loading, loader, paused }: Traced): void {
  const left = useRef(UNASKED);
  useEffect(() => {
    const { busy, error, found, end } = loading;
    const grid = gridOf(box.current);
    if (!whole || paused || rows === 0 || grid === null || grid.scrollHeight > grid.clientHeight) return undefined;
    if (busy !== null || error !== null || found !== null || end !== null || (first ?? 1) <= 1 || left.current === 0) return undefined;
    // what was loaded is in the list with the next frame
    const frame = requestAnimationFrame(() => {
      left.current -= 1;
      loader.older(run, first ?? 1);
    });
    return () => cancelAnimationFrame(frame);
  }, [box, rows, whole, paused, run, first, loading, loader]);
}

function gridOf(box: HTMLElement | null): HTMLElement | null {
  return box?.querySelector<HTMLElement>("[role=grid], [role=treegrid]") ?? null;
}

function countUnseen(rows: readonly Keyed[], order: "oldest" | "newest", left: string | undefined): string | null {
  if (left === undefined) return null;
  const index = rows.findLastIndex((row) => row.key === left);
  if (index === -1) return "Newest";
  const count = order === "newest" ? index : rows.length - 1 - index;
  return count === 0 ? null : `${count} new`;
}

function bringIntoView(grid: HTMLElement | null, index: number, rowHeight: number): void {
  if (grid === null) return;
  const top = index * rowHeight;
  // the head covers a row's height of the box
  if (top < grid.scrollTop || top + 2 * rowHeight > grid.scrollTop + grid.clientHeight) {
    grid.scrollTop = Math.max(0, top - grid.clientHeight / 2);
  }
}
