import { useCallback, useMemo, useState } from "react";
import type { Line } from "./merge";

/** The lines that a person has cleared from the view; the page still has them. */
export interface Cleared {
  /** When, in seconds since the epoch. */
  at: number;
  /** How many entries are hidden; 0 where nothing is cleared. */
  hidden: number;
  /** Hides all that there is now. */
  clear: () => void;
  /** Shows what was hidden. */
  show: () => void;
}

/** The lines behind the place where the view was cleared, and what is before it. */
export function useCleared(lines: readonly Line[]): [readonly Line[], Cleared] {
  const [mark, setMark] = useState<{ key: string | undefined; at: number } | null>(null);
  const last = lines.at(-1)?.key;
  const clear = useCallback(() => setMark({ key: last, at: Date.now() / 1000 }), [last]);
  const show = useCallback(() => setMark(null), []);
  // where the line of the mark has left the page, all that are left are behind it
  const from = useMemo(() => (mark === null ? 0 : lines.findLastIndex((line) => line.key === mark.key) + 1), [lines, mark]);
  const visible = useMemo(() => (from === 0 ? lines : lines.slice(from)), [lines, from]);
  const hidden = useMemo(() => lines.slice(0, from).filter((line) => line.type === "entry").length, [lines, from]);
  return [visible, useMemo(() => ({ at: mark?.at ?? 0, hidden, clear, show }), [mark, hidden, clear, show])];
}
