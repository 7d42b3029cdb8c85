import type { Entry } from "~/protocol/schema";
import { bySeq, directionOf, isMessage, methodOf, offsetOf, originOf, progressOf } from "~/trace/evidence";
import { list, progress } from "~/words/message-summary";
import { summaryOf, titleOf } from "~/words/summary";

/** One message of a call, and when: milliseconds since the call began. */
export interface Step {
  seq: number;
  offset: number;
  direction: "in" | "out" | null;
  /** What must be alike for two messages to stand beside each other. */
  kind: string;
  text: string;
}

/** A line of the comparison: a message of each call, or of one of them. */
export interface Pair {
  a: Step | null;
  b: Step | null;
}

// the work grows with the product of both: a million is some milliseconds
const MOST = 1000;

/** The messages of a call, in order. */
export function stepsOf(entries: readonly Entry[]): Step[] {
  const origin = originOf(entries);
  if (origin === undefined) return [];
  const entryOf = bySeq(entries);
  return entries
    .filter(isMessage)
    .slice(0, MOST)
    .map((entry) => ({
      seq: entry.seq,
      offset: offsetOf(entry, origin),
      direction: directionOf(entry),
      kind: [entry.kind, entry.rpc, entry.method].join(" "),
      text: textOf(entry, methodOf(entry, entryOf)),
    }));
}

/** Without ids and tokens, which differ between any two calls. */
function textOf(entry: Entry, method: string | null): string {
  const told = progressOf(entry);
  const far = told === null ? "" : progress(told.progress, told.total, told.message);
  return list(titleOf(entry, method), far, summaryOf(entry, method).mark?.text);
}

/** Both sequences side by side: the longest common sequence of kinds is paired, what is left stands alone. */
export function align(a: readonly Step[], b: readonly Step[]): Pair[] {
  const common = commonLengths(a, b);
  const width = b.length + 1;
  const pairs: Pair[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i] ?? null, b[j] ?? null];
    if (left !== null && right !== null && left.kind === right.kind) {
      pairs.push({ a: left, b: right });
      i += 1;
      j += 1;
    } else if (right === null || (left !== null && (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))) {
      pairs.push({ a: left, b: null });
      i += 1;
    } else {
      pairs.push({ a: null, b: right });
      j += 1;
    }
  }
  return pairs;
}

/** How long the longest common sequence of the rests of both is, from each place on. */
function commonLengths(a: readonly Step[], b: readonly Step[]): Uint16Array {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  const at = (index: number) => lengths[index] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const here = i * width + j;
      lengths[here] = a[i]?.kind === b[j]?.kind ? at(here + width + 1) + 1 : Math.max(at(here + width), at(here + 1));
    }
  }
  return lengths;
}
