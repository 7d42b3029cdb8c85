import { useMemo } from "react";
import type { ExchangeRow } from "~/protocol/schema";
import type { Viewed } from "~/trace/entry";
import type { Tone } from "~/ui/badge";
import { stateOf } from "~/words/states";
import { HostNames } from "./marks";
import { HAS_STOPPED, type LaneKey, type Rows, type Step, stepsOf } from "./steps";
import type { Names } from "./words";

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
      return { ...bar, lane: hosts.laneOf(entry), to: row?.ended?.mono ?? null, label: `${entry.call} at the tool host`, tone: row?.ended == null ? "info" : row.ending.code === HAS_STOPPED ? "warn" : stateOf(row.ending.state).tone };
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
