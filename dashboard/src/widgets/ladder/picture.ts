import { useMemo } from "react";
import type { ExchangeRow } from "~/protocol/schema";
import type { Viewed } from "~/trace/entry";
import type { Tone } from "~/ui/badge";
import { stateOf } from "~/words/states";
import type { Names, Row } from "./rows";
import { HAS_STOPPED, HostNames, type LaneKey, type Rows, type Step, stepsOf } from "./steps";

/** Rows evenly below each other, or apart by the time between them. */
export type Pace = "even" | "scale";

/** A time in which nothing happened. */
interface Gap {
  ms: number;
  /** Where it is said: the middle between two rows. */
  y: number;
  /** Whether the picture shows less of it than its scale would. */
  cut: boolean;
}

export interface Placed {
  row: Row;
  /** Its place among all rows. */
  index: number;
  /** Where its arrow or its mark is; its label stands above. All lengths are in pixels. */
  y: number;
  /** The silence before it. */
  gap: Gap | null;
}

export interface Layout {
  placed: readonly Placed[];
  height: number;
  /** Where a moment lies, between the rows before and after it. `mono` in seconds. */
  yOf: (mono: number) => number;
}

const HEAD = 34;
const FOOT = 26;
const ROW = 40;
// an arrow below its label
const LEAST = 30;
const MOST_EVEN = 120;
// of a longer silence, this much is shown
const MOST = 420;
// who reads the steps one by one wants to be told of a silence
const SILENCE_MS = 1000;
const SILENCE = 22;

const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));

/**
 * Where each row lies. `zoom` 1 is the usual size, 2 twice of that.
 *
 * With `scale` the same time is the same distance, but rows stay readable: two that are too close to each other are moved apart,
 * and of a long silence a part is shown, which says so.
 */
export function layoutOf(rows: readonly Row[], pace: Pace, zoom: number): Layout {
  const scale = scaleOf(rows) * zoom;
  const even = clamp(ROW * zoom, LEAST, MOST_EVEN);
  const placed: Placed[] = [];
  let y = HEAD;
  let ended = rows[0]?.steps[0].at ?? 0;
  let began = ended;
  for (const row of rows) {
    const at = row.steps[0].at;
    const silence = Math.max(0, at - ended) * 1000;
    const wanted = pace === "even" ? even : (at - began) * 1000 * scale;
    const told = pace === "even" ? silence >= SILENCE_MS : wanted > MOST;
    const distance = placed.length === 0 ? 0 : pace === "even" ? even + (told ? SILENCE : 0) : clamp(wanted, LEAST, MOST);
    const gap = placed.length > 0 && told ? { ms: silence, y: y + (distance - LEAST + 10) / 2, cut: pace === "scale" } : null;
    y += distance;
    placed.push({ row, index: placed.length, y, gap });
    began = at;
    ended = Math.max(ended, lastOf(row));
  }
  return { placed, height: y + FOOT, yOf: (mono) => between(placed, mono) };
}

const lastOf = ({ steps }: Row) => (steps.at(-1) ?? steps[0]).at;

/** Pixels for each millisecond, with which the whole is as long as with even rows. */
function scaleOf(rows: readonly Row[]): number {
  const [first, last] = [rows[0], rows.at(-1)];
  const ms = first === undefined || last === undefined ? 0 : (last.steps[0].at - first.steps[0].at) * 1000;
  return ms <= 0 ? 0 : (rows.length * ROW) / ms;
}

/** The first of the rows for which `test` holds; it holds for all behind that one. */
function firstWhere(placed: readonly Placed[], test: (each: Placed) => boolean): number {
  let [low, high] = [0, placed.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const each = placed[middle];
    if (each !== undefined && test(each)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function between(placed: readonly Placed[], mono: number): number {
  const index = firstWhere(placed, ({ row }) => row.steps[0].at > mono);
  const [before, after] = [placed[index - 1], placed[index]];
  if (before === undefined) return (after?.y ?? HEAD) - LEAST / 2;
  const from = before.row.steps[0].at;
  // behind the last row there is no scale
  if (after === undefined) return before.y + (mono > from ? LEAST / 2 : 0);
  const length = after.row.steps[0].at - from;
  return length <= 0 ? before.y : before.y + ((mono - from) / length) * (after.y - before.y);
}

/** The rows in a window of the picture, with those that reach into it. */
export function visible({ placed }: Layout, top: number, bottom: number): readonly Placed[] {
  const first = firstWhere(placed, ({ y }) => y >= top - LEAST);
  const end = firstWhere(placed, ({ y }) => y > bottom + LEAST);
  // one more on either side, as its gap or its arrow may reach in
  return placed.slice(Math.max(0, first - 1), end + 1);
}

export interface Columns {
  /** Where the column of times ends; null where there is no room for one. */
  time: number | null;
  /** The lifelines, from the left. */
  xs: readonly number[];
  /** Where labels have to end. */
  right: number;
}

const TIMES = 108;
// lanes further apart than this, or this share of the width, make the eye travel
const APART = 560;
const SHARE = 0.45;
// beside the last lane, for what happens on it
const BESIDE = 250;

/** Where so many lanes stand in a picture of a width. */
export function columnsOf(lanes: number, width: number): Columns {
  const narrow = width < 640;
  const left = narrow ? 22 : TIMES + 34;
  const right = width - (narrow ? 26 : width < 1000 ? 60 : BESIDE);
  const apart = Math.max(60, Math.min(Math.max(APART, SHARE * width), (right - left) / Math.max(1, lanes - 1)));
  return { time: narrow ? null : TIMES, xs: Array.from({ length: lanes }, (_, index) => left + index * apart), right: width - 8 };
}

/** How long something lasted on a lane: work on that of the server or of a tool host, an open event stream on that of the client. */
export interface Bar {
  key: string;
  lane: LaneKey;
  /** By the monotonic clock, in seconds; `to` is null while it goes on. */
  from: number;
  to: number | null;
  label: string;
  tone: Tone;
  /** Which of the bars beside each other on its lane, from 0. */
  depth: number;
}

/** What entries of one run tell as a ladder: who takes part, what was said, and what lasted. */
export interface Picture {
  lanes: readonly LaneKey[];
  names: Names;
  steps: readonly Step[];
  bars: readonly Bar[];
}

/** The picture of entries, which are in the order of the log, and of the rows of their exchanges. `client` is the name of the client's lane. */
export function pictureOf(entries: readonly Viewed[], exchanges: readonly ExchangeRow[], client: string): Picture {
  const rows: Rows = new Map(exchanges.map((row) => [row.exchange, row]));
  const steps = stepsOf(entries, rows);
  const hosts = new Set(steps.flatMap(({ from, to }) => [from, to]).filter((lane) => lane.startsWith("host ")));
  const lanes: readonly LaneKey[] = ["client", "probe", ...hosts];
  const name = (lane: LaneKey) => (lane === "client" ? client : lane === "probe" ? "MCP Probe" : `tool ${lane}`);
  const named = new HostNames(entries);
  const bars = beside(entries.flatMap((entry) => barOf(entry, rows, named) ?? []));
  return { lanes, names: new Map(lanes.map((lane) => [lane, name(lane)])), steps, bars: bars.filter(({ lane }) => lanes.includes(lane)) };
}

export function usePicture(entries: readonly Viewed[], exchanges: readonly ExchangeRow[], client: string): Picture {
  return useMemo(() => pictureOf(entries, exchanges, client), [entries, exchanges, client]);
}

/** The bar that an entry begins; its end is in the row of its exchange. */
function barOf(entry: Viewed, rows: Rows, hosts: HostNames): Omit<Bar, "depth"> | null {
  const row = rows.get(entry.view.exchange);
  const bar = { key: String(entry.seq), from: entry.mono };
  switch (entry.kind) {
    case "call.started": {
      const end = row?.call === entry.call ? row.work?.ended : null;
      return { ...bar, lane: "probe", to: end?.mono ?? null, label: `${entry.call} ${entry.tool ?? entry.method}`, tone: end == null ? "info" : stateOf(row?.ending.state ?? "").tone };
    }
    case "http.response":
      if (entry.content_type !== "text/event-stream" || entry.stream === null) return null;
      return { ...bar, lane: "client", to: row?.ended?.mono ?? null, label: `event stream ${entry.stream} in request ${entry.exchange}`, tone: "neutral" };
    case "host.message":
      if (entry.method !== "tool.dispatch") return null;
      return { ...bar, lane: hosts.laneOf(entry), to: row?.ended?.mono ?? null, label: `${entry.call} at the tool host`, tone: row?.ended == null ? "info" : stateOf(row.ending.code === HAS_STOPPED ? "cancelled" : row.ending.state).tone };
    default:
      return null;
  }
}

/** Bars of a lane that overlap stand beside each other. */
function beside(bars: readonly Omit<Bar, "depth">[]): Bar[] {
  const taken = new Map<LaneKey, number[]>();
  return bars.map((bar) => {
    const ends = taken.get(bar.lane) ?? [];
    taken.set(bar.lane, ends);
    const free = ends.findIndex((end) => end <= bar.from);
    const depth = free === -1 ? ends.length : free;
    ends[depth] = bar.to ?? Number.POSITIVE_INFINITY;
    return { ...bar, depth };
  });
}
