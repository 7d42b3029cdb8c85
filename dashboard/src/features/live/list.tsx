import { type UIEvent, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "~/ui/button";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { columnsOf } from "./columns";
import type { Filtered } from "./filters";
import { Older } from "./gap-cells";
import { useKnown } from "./known";
import styles from "./live.module.css";
import type { Line } from "./merge";
import type { History } from "./use-history";
import { type useLiveUrl, placeOf } from "./use-live-url";

/** The last row of the list is no entry: it leads to older ones. */
export type ListRow = Line | { type: "older"; key: "older" };

const OLDER: ListRow = { type: "older", key: "older" };
const ROW_HEIGHT = 26;

interface ListProps {
  filtered: Filtered;
  /** How many entries the page has loaded, and how many the log of the server keeps, as far as that is known. */
  loaded: number;
  kept: number | undefined;
  /** The oldest entry of the current run that there is. */
  oldest: number | null;
  paused: boolean;
  url: ReturnType<typeof useLiveUrl>;
  history: History;
  onOpen: (run: string, seq: number) => void;
}

/** The list of entries. It holds its place while new ones come, unless its top is in view. */
export function List({ filtered, loaded, kept, oldest, paused, url, history, onOpen }: ListProps) {
  const { run } = useKnown();
  const { lines, counts } = filtered;
  const rows = useMemo((): readonly ListRow[] => [...lines, OLDER], [lines]);
  const narrow = url.at !== "";
  const columns = useMemo(() => columnsOf({ run, history, oldest, narrow, onOpen }), [run, history, oldest, narrow, onOpen]);
  const place = placeOf(url.at);
  const selected = place === null ? undefined : `${place.run ?? run}-${place.seq}`;
  const { box, onScroll, unseen, toNewest } = useScrolling(lines, selected, paused);
  if (counts.entries === 0) return <NothingPasses loaded={loaded} kept={kept} onClear={url.clear} history={history} oldest={oldest} />;
  return (
    <div ref={box} className={styles["list"]} onScrollCapture={onScroll}>
      {unseen !== null && (
        <div className={styles["pill"]}>
          <Button look="primary" onClick={toNewest}>
            ↑ {unseen}
          </Button>
        </div>
      )}
      <DataTable
        label="Events, newest first"
        columns={columns}
        rows={rows}
        rowKey={(row) => row.key}
        selected={selected}
        onSelect={(row) => {
          if (row.type === "entry") onOpen(row.run, row.entry.seq);
        }}
        rowHeight={ROW_HEIGHT}
      />
    </div>
  );
}

interface NothingProps extends Pick<ListProps, "loaded" | "kept" | "history" | "oldest"> {
  onClear: () => void;
}

function NothingPasses({ loaded, kept, onClear, history, oldest }: NothingProps) {
  return (
    <EmptyState title={loaded === 0 ? "This list is empty" : `None of the ${loaded} loaded entries passes the filters`}>
      <p>
        {kept !== undefined && kept > loaded && `The log of the server has ${kept} entries. `}
        {loaded === 0 ? "New entries appear here as they come." : "New entries appear here when they pass the filters."}
      </p>
      <br />
      {loaded > 0 && <Button onClick={onClear}>Clear filters</Button>}
      <br />
      <br />
      {oldest !== null && <Older history={history} before={oldest} />}
    </EmptyState>
  );
}

/** Where the list stands: how many lines came in above, the way back to them, and the selected one brought into view. */
function useScrolling(lines: readonly Line[], selected: string | undefined, paused: boolean) {
  const box = useRef<HTMLDivElement>(null);
  // the newest line when the top went out of view
  const [left, setLeft] = useState<string | null>(null);
  const grid = () => box.current?.querySelector<HTMLElement>("[role=grid]") ?? null;
  const toNewest = () => {
    grid()?.scrollTo({ top: 0 });
  };
  const onScroll = (event: UIEvent) => {
    const { scrollTop } = event.target as HTMLElement;
    const newest = lines[0]?.key ?? null;
    setLeft((before) => (scrollTop === 0 ? null : (before ?? newest)));
  };
  useEffect(() => {
    if (!paused) box.current?.querySelector("[role=grid]")?.scrollTo({ top: 0 });
  }, [paused]);
  const index = useMemo(() => (selected === undefined ? -1 : lines.findIndex((line) => line.key === selected)), [lines, selected]);
  const found = index !== -1;
  // only when another line is selected or the selected one appears, not each time that it moves
  const shown = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (!found) {
      shown.current = undefined;
    } else if (shown.current !== selected) {
      shown.current = selected;
      bringIntoView(box.current?.querySelector<HTMLElement>("[role=grid]") ?? null, index);
    }
  }, [found, selected, index]);
  return { box, onScroll, unseen: countAbove(lines, left), toNewest };
}

function countAbove(lines: readonly Line[], left: string | null): string | null {
  if (left === null || lines[0]?.key === left) return null;
  const count = lines.findIndex((line) => line.key === left);
  return count === -1 ? "Newest" : `${count} new`;
}

function bringIntoView(grid: HTMLElement | null, index: number): void {
  if (grid === null) return;
  const top = index * ROW_HEIGHT;
  // the head covers a row's height of the box
  if (top < grid.scrollTop || top + 2 * ROW_HEIGHT > grid.scrollTop + grid.clientHeight) {
    grid.scrollTop = Math.max(0, top - grid.clientHeight / 2);
  }
}
