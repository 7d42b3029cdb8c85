import { type ReactNode, useCallback, useMemo, useState } from "react";
import { Button } from "~/ui/button";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { columnsOf } from "./columns";
import { GapBadge, GapText, Older } from "./gap-cells";
import { useKnown } from "./known";
import styles from "./live.module.css";
import type { History } from "./use-history";
import { type LiveUrl, placeOf } from "./use-live-url";
import { useRoom } from "./use-room";
import { useScrolling } from "./use-scrolling";
import type { Search } from "./use-search";
import { wireColumns } from "./wire-columns";
import { type LiveRow, entryOf, isOpen, levelOf } from "./wire-rows";

const ROW_HEIGHT = 26;
// two lines of text
const TALL_ROW = 46;

interface ListProps {
  /** As they stand, with those below open ones. */
  rows: readonly LiveRow[];
  search: Search;
  /** The oldest entry of the current run that there is. */
  oldest: number | null;
  url: LiveUrl;
  history: History;
  open: ReadonlySet<string>;
  onToggle: (row: LiveRow) => void;
  follow: boolean;
  setFollow: (follow: boolean) => void;
  onOpen: (run: string, seq: number) => void;
}

/** The list of exchanges or entries. It holds its place while new ones come, unless its newest end is followed. */
export function List({ rows, search, oldest, url, history, open, onToggle, follow, setFollow, onOpen }: ListProps) {
  const run = useKnown((known) => known.run);
  const { view, order } = url;
  const hasPanel = url.at !== "";
  const room = useRoom();
  const columns = useMemo(
    () =>
      view === "wire"
        ? wireColumns({ open, onToggle, room: room === "one" ? "one" : hasPanel ? "beside" : room })
        : columnsOf({ narrow: hasPanel || room !== "all", onOpen }),
    [view, open, onToggle, room, hasPanel, onOpen],
  );
  const selected = useMemo(() => selectedKey(rows, url.at, run), [rows, url.at, run]);
  const rowHeight = view === "wire" && room === "one" ? TALL_ROW : ROW_HEIGHT;
  const { box, onScroll, unseen } = useScrolling({ rows, rowHeight, order, selected, follow, setFollow });
  const tree = useMemo(() => ({ level: levelOf, isOpen: (row: LiveRow) => isOpen(row, open), onToggle }), [open, onToggle]);
  const onSelect = useCallback(
    (row: LiveRow) => {
      const chosen = entryOf(row);
      if (chosen !== null) onOpen(chosen.run, chosen.entry.seq);
      else if (row.type === "progress" || row.type === "repeat") onToggle(row);
    },
    [onOpen, onToggle],
  );
  if (rows.every((row) => row.type === "older" || row.type === "gap")) {
    return <NothingPasses search={search} url={url} history={history} oldest={oldest} />;
  }
  return (
    <div ref={box} className={styles["list"]} onScrollCapture={onScroll}>
      {unseen !== null && !follow && (
        <div className={order === "newest" ? styles["pill"] : `${styles["pill"]} ${styles["below"]}`}>
          <Button look="primary" onClick={() => setFollow(true)}>
            {order === "newest" ? "↑" : "↓"} {unseen}
          </Button>
        </div>
      )}
      <DataTable
        label={`${view === "wire" ? "Exchanges" : "Events"}, ${order} first`}
        columns={columns}
        rows={rows}
        rowKey={keyOf}
        selected={selected}
        onSelect={onSelect}
        across={(row) => across(row, run, search, oldest, history)}
        rowHeight={rowHeight}
        {...(view === "wire" && { tree })}
      />
    </div>
  );
}

const keyOf = (row: LiveRow) => row.key;

/** What stands in place of the cells: what is missing, and how to get what is older. It changes with each frame. */
function across(row: LiveRow, run: string, search: Search, oldest: number | null, history: History): ReactNode {
  if (row.type === "older") return <Older history={history} before={oldest ?? 0} search={search} />;
  if (row.type !== "gap") return undefined;
  return (
    <>
      <GapBadge line={row} /> <GapText line={row} run={run} history={history} />
    </>
  );
}

/** The key of the row that shows the selected entry: its own, or that of its exchange. */
function selectedKey(rows: readonly LiveRow[], at: string, run: string): string | undefined {
  const place = placeOf(at);
  if (place === null) return undefined;
  const own = `${place.run ?? run}-${place.seq}`;
  const of = place.run ?? run;
  let around: string | undefined;
  for (const row of rows) {
    if (row.key === own) return own;
    if (row.type === "exchange" && row.exchange.run === of && hasEntry(row.exchange.entries, place.seq)) around = row.key;
  }
  return around ?? own;
}

function hasEntry(entries: readonly { seq: number }[], seq: number): boolean {
  // in the order of the log, so that most exchanges are told by their ends
  const [first] = entries;
  const last = entries.at(-1);
  return first !== undefined && last !== undefined && first.seq <= seq && seq <= last.seq && entries.some((entry) => entry.seq === seq);
}

/** Which rows are open, and how to change that. */
export function useOpenRows(): [ReadonlySet<string>, (row: LiveRow) => void] {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback((row: LiveRow) => setOpen((before) => (before.has(row.key) ? new Set([...before].filter((key) => key !== row.key)) : new Set([...before, row.key]))), []);
  return [open, toggle];
}

function NothingPasses({ search, url, history, oldest }: Pick<ListProps, "search" | "url" | "history" | "oldest">) {
  const { line, view, filter, change } = url;
  const what = view === "wire" ? "exchanges" : "entries";
  if (line === "") {
    return (
      <EmptyState title="This list is empty">
        <p>New {what} appear here as they come.</p>
        <br />
        {oldest !== null && <Older history={history} before={oldest} />}
      </EmptyState>
    );
  }
  if (search.error !== null) {
    return (
      <EmptyState title="Nothing on this page passes the filter">
        <p>The log could not be searched: {search.error}</p>
        <br />
        <Button onClick={() => filter("")}>Clear the filter</Button>
      </EmptyState>
    );
  }
  if (search.counts === null || search.busy) return <EmptyState title="Searching the log">Nothing that this page has passes the filter.</EmptyState>;
  return (
    <EmptyState title={`None of the ${search.counts.total.toLocaleString("en")} ${what} in the log passes the filter`}>
      <p>New ones appear here when they pass it.</p>
      <br />
      <Button onClick={() => filter("")}>Clear the filter</Button> {view === "wire" && <Button onClick={() => change({ view: "all" })}>Look at all kinds of entries</Button>}
    </EmptyState>
  );
}
