import { formatClock } from "~/ui/time-format";
import type { Span } from "./lane";

/** Where a moment lies, in pixels. */
export type Scale = (at: number) => number;

export function scaleOf({ from, until }: Span, width: number): Scale {
  return (at) => ((at - from) / (until - from)) * width;
}

/** The moment at a place, in seconds since the epoch. */
export function momentAt({ from, until }: Span, width: number, x: number): number {
  return from + (Math.min(width, Math.max(0, x)) / Math.max(width, 1)) * (until - from);
}

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
// a label takes about half of it
const APART = 110;

/** The moments at which the axis has a line, each with its clock; milliseconds only where lines are nearer than a second. */
export function axisOf({ from, until }: Span, width: number): { at: number; label: string }[] {
  const least = ((until - from) * APART) / Math.max(width, 1);
  const step = STEPS.find((each) => each >= least) ?? 14_400;
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(until / step) - first + 1);
  return Array.from({ length: count }, (_, index) => {
    const at = (first + index) * step;
    return { at, label: formatClock(at).slice(0, step < 1 ? undefined : -4) };
  });
}
