import type { ReactNode } from "react";
import type { CallRow } from "~/api/schema";
import { brief } from "~/ui/json";

// a line of a table shows no more of it
const LINE = 400;

/** How many ended calls the page shows without asking the audit. */
export const RECENT = 50;

/** Makes a table of calls; `empty` stands where there are none. */
export type CallTable = (calls: readonly CallRow[], empty: ReactNode) => ReactNode;

interface Cut {
  cut: string;
  bytes: number;
}

/** Whether a value of a row is the beginning of what was too long to be kept. */
export function isCut(value: unknown): value is Cut {
  if (typeof value !== "object" || value === null) return false;
  const { cut, bytes } = value as Partial<Cut>;
  return Object.keys(value).length === 2 && typeof cut === "string" && typeof bytes === "number" && bytes > cut.length;
}

/** JSON in one line, as far as a line goes. */
export function oneLine(value: unknown): string {
  if (isCut(value)) return `${value.cut.slice(0, LINE)}…`;
  return brief(value, LINE);
}

export function stateOfCall(call: CallRow): string {
  return call.outcome ?? "running";
}

/** Running calls, newest first, then the newest that have ended. */
export function recentCalls(calls: readonly CallRow[]): CallRow[] {
  const newest = calls.toSorted((a, b) => b.seq - a.seq);
  const running = newest.filter((call) => call.outcome === null);
  return [...running, ...newest.filter((call) => call.outcome !== null).slice(0, RECENT)];
}

/** The two calls chosen to be compared, after a click on `id`: a third one takes the place of the older choice. */
export function choose(chosen: readonly string[], id: string): string[] {
  return chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id].slice(-2);
}

export function callHref(id: string): string {
  return `/calls/${encodeURIComponent(id)}`;
}

export function compareHref(a: string, b: string): string {
  return `/calls/compare?${new URLSearchParams({ a, b })}`;
}
