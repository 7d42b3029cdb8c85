import type { Item } from "~/trace/entry";
import type { Snapshot } from "~/trace/feed";
import { Builder } from "./builder";
import { fromCall, fromStream, fromTask } from "./from-rows";
import type { Lane } from "./lane";

/** Closes what belongs to an earlier run of the server: of its end nothing was heard. */
function closeEarlierRuns(lanes: Iterable<Lane>, run: string, ends: ReadonlyMap<string, number>): void {
  for (const lane of lanes) {
    const own = lane.key.slice(0, lane.key.indexOf("/"));
    if (own !== run && lane.to === null) Object.assign(lane, { to: ends.get(own) ?? lane.from, state: "end unknown" });
  }
}

/** Adds what the entries at hand do not tell: a lane, its beginning, or its end, which may be in a gap. */
function merge(lanes: Map<string, Lane>, row: Lane): void {
  const lane = lanes.get(row.key);
  if (lane === undefined) {
    lanes.set(row.key, row);
    return;
  }
  // of a call and a stream the entry with which the lane began is at hand
  if (lane.kind === "task") lane.from = Math.min(lane.from, row.from);
  lane.cancelled ??= row.cancelled;
  if (lane.to === null && row.to !== null) Object.assign(lane, { to: lane.from + row.to - row.from, state: row.state });
}

/** What the feed knows as lanes, the newest first. Rows tell of what began before the entries that are at hand. */
export function lanesOf(items: readonly Item[], tables: Snapshot["tables"], run: string): Lane[] {
  const builder = new Builder();
  const ends = new Map<string, number>();
  // by its newest entry, what its monotonic clock lacks to the time of day, in seconds
  const clocks = new Map<string, number>();
  for (const item of items) if (item.type === "entry") clocks.set(item.run, item.entry.at - item.entry.mono);
  for (const item of items) {
    if (item.type !== "entry") continue;
    const at = item.entry.mono + (clocks.get(item.run) ?? 0);
    builder.take(item.run, { ...item.entry, at });
    ends.set(item.run, at);
  }
  const { lanes } = builder;
  for (const row of tables.calls) merge(lanes, fromCall(row));
  for (const row of tables.tasks) merge(lanes, fromTask(row, run, lanes.get(`${run}/call/${row.call}`)));
  for (const row of tables.streams) merge(lanes, fromStream(row, run));
  closeEarlierRuns(lanes.values(), run, ends);
  return [...lanes.values()].toSorted((a, b) => b.from - a.from);
}
