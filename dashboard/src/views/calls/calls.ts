import { brief } from "~/protocol/json";
import type { CallRow } from "~/protocol/schema";
import type { Tab } from "~/ui/page";
import { formatMoment } from "~/ui/time-format";
import { stateIn } from "~/words/states";

// a line of a table shows no more of it
const LINE = 400;

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

/** `ended` says that the log has ended, and the call with it. */
export const stateOfCall = (call: CallRow, ended = false): string => stateIn(call.outcome ?? "running", ended);

/**
 * The pages of an answer as one list, newest first; what a later page says of a call replaces what an earlier one said. Rows of the
 * feed are newer still. Only when `all` are asked for, they can be calls that no page has yet.
 */
export function merged(pages: readonly (readonly CallRow[])[], feed: readonly CallRow[], all: boolean): CallRow[] {
  const found = new Map(pages.flat().map((call) => [call.id, call]));
  for (const call of feed) if (all || found.has(call.id)) found.set(call.id, call);
  return [...found.values()].toSorted((a, b) => b.started_at - a.started_at || b.seq - a.seq);
}

/** A line between the calls of two runs of the server. */
interface Divider {
  id: string;
  divides: string;
}

export type Line = CallRow | Divider;

export function isDivider(line: Line): line is Divider {
  return "divides" in line;
}

/** The calls with a line wherever those of an earlier run begin. `run` is the present one, since `startedAt`. */
export function withDividers(calls: readonly CallRow[], run: string, startedAt: number): Line[] {
  let before = run;
  return calls.flatMap((call): Line[] => {
    if (call.run === before || run === "") return [call];
    const divides = before === run ? `Before the restart at ${formatMoment(startedAt)}` : `Before another restart: run ${call.run}`;
    before = call.run;
    return [{ id: `before ${call.id}`, divides }, call];
  });
}

export function callHref(id: string): string {
  return `/calls/${encodeURIComponent(id)}`;
}

/** The parts of the view of the calls. */
export const CALLS_TABS: readonly Tab[] = [
  ["/calls", "Tool calls"],
  ["/calls/tasks", "Tasks"],
];
