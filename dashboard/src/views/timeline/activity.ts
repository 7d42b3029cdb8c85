import type { Lane, Span } from "./lane";

/** When something last happened on any of the lanes; undefined where there are none. That a lane goes on is nothing that happens. */
export function lastActivity(lanes: readonly Lane[]): number | undefined {
  const moments = lanes.map((lane) => Math.max(lane.from, lane.to ?? 0, lane.cancelled?.at ?? 0, ...lastOf(lane)));
  return moments.length === 0 ? undefined : moments.reduce((a, b) => Math.max(a, b));
}

/** The last moments of its messages and of its parts, which are in order. */
function lastOf({ ticks, phases }: Lane): number[] {
  const [tick, phase] = [ticks.at(-1), phases.at(-1)];
  return [tick?.at ?? 0, tick?.delivered ?? 0, phase?.from ?? 0, phase?.to ?? 0];
}

// on both sides, so that no bar touches the border
const MARGIN = 0.04;

/** The span that has all of the lanes; undefined where there are none. What goes on ends at `now`. */
export function wholeOf(lanes: readonly Lane[], now: number): Span | undefined {
  const from = lanes.reduce((least, lane) => Math.min(least, lane.from), Number.POSITIVE_INFINITY);
  const until = lanes.reduce((most, lane) => Math.max(most, lane.to ?? Math.max(now, lane.from)), 0);
  if (lanes.length === 0) return undefined;
  const margin = Math.max(0.02, until - from) * MARGIN;
  return { from: from - margin, until: until + margin };
}

/** A span of a length that ends just behind the last activity. */
export function endingAt(moment: number, length: number): Span {
  const until = moment + length * MARGIN;
  return { from: until - length, until };
}
