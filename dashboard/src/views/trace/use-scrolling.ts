import { type RefObject, type UIEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

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
export function useScrolling({ rows, rowHeight, order, selected, follow, setFollow }: Options): Scrolling {
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
