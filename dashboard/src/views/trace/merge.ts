import type { Entry, FeedGap } from "~/protocol/schema";

/** What the view lists: entries, and places where some are missing. `passed`: this page kept only newer ones. */
export type Line =
  | { type: "entry"; key: string; run: string; entry: Entry }
  | { type: "gap"; key: string; run: string; gap: Omit<FeedGap, "reason"> & { reason: FeedGap["reason"] | "passed" } };

/** A row of the list. The one at the end of the oldest entries is no entry: it leads to older ones. */
export type ListRow = Line | { type: "older"; key: "older" };

type Gap = Extract<Line, { type: "gap" }>;

/** Entries of one run that were fetched from the API; oldest first, without duplicates. */
export interface Fetched {
  run: string;
  entries: readonly Entry[];
  /** The newest entry that the log is known to have lost. */
  evicted: number;
}

const NONE: readonly Entry[] = [];

/**
 * The items of the feed (oldest first) with the fetched entries in their places.
 *
 * A gap shrinks to what is still missing. Between older history and the feed's oldest entry a gap is put where entries
 * lie between, as the feed keeps only its newest ones. Behind the entry `whole` the feed brings those of one client only, so
 * that numbers left out between two of its entries are no gap.
 */
export function merge(items: readonly Line[], fetched: Fetched, whole = Number.POSITIVE_INFINITY): readonly Line[] {
  if (fetched.entries.length === 0 && fetched.evicted === 0) return items;
  const { entries } = fetched;
  let next = 0;
  const merged: Line[] = [];
  let reached = 0;
  let fromFeed = false;
  const put = (entry: Entry) => {
    merged.push({ type: "entry", key: `${fetched.run}-${entry.seq}`, run: fetched.run, entry });
    reached = entry.seq;
    fromFeed = false;
  };
  const hole = (first: number, last: number, of: Gap | null) => {
    if (first <= last) merged.push(missing(fetched, first, last, of));
  };
  const upTo = (seq: number) => {
    const from = next;
    while (next < entries.length && (entries[next]?.seq ?? 0) <= seq) next += 1;
    return from === next ? NONE : entries.slice(from, next);
  };
  for (const item of items) {
    if (item.run !== fetched.run || (item.type === "gap" && item.gap.last === null)) {
      merged.push(item);
    } else if (item.type === "entry") {
      const { seq } = item.entry;
      for (const entry of upTo(seq - 1)) put(entry);
      upTo(seq);
      if (reached > 0 && !(fromFeed && seq > whole)) hole(reached + 1, seq - 1, null);
      merged.push(item);
      reached = seq;
      fromFeed = true;
    } else {
      const last = item.gap.last ?? 0;
      const first = item.gap.first ?? last;
      for (const entry of upTo(first - 1)) put(entry);
      if (reached > 0) hole(reached + 1, first - 1, null);
      reached = first - 1;
      for (const entry of upTo(last)) {
        hole(reached + 1, entry.seq - 1, item);
        put(entry);
      }
      hole(reached + 1, last, item);
      reached = last;
    }
  }
  for (const entry of entries.slice(next)) put(entry);
  return merged;
}

function missing({ run, evicted }: Fetched, first: number, last: number, of: Gap | null): Gap {
  const reason = last <= evicted ? "evicted" : (of?.gap.reason ?? "passed");
  const whole = of !== null && of.gap.first === first && of.gap.last === last && of.gap.reason === reason;
  return whole ? of : { type: "gap", key: `${run}-gap-${first}-${last}`, run, gap: { reason, first, last } };
}

/**
 * The lines with the entries of their run that a search found, in their places.
 *
 * What the feed skipped or this page did not keep is no gap then: of what is searched for, nothing is missing.
 */
export function withFound(lines: readonly Line[], found: readonly Entry[], run: string): readonly Line[] {
  if (found.length === 0) return lines;
  const merged: Line[] = [];
  let next = 0;
  const upTo = (seq: number) => {
    for (let entry = found[next]; entry !== undefined && entry.seq < seq; entry = found[next]) {
      next += 1;
      merged.push({ type: "entry", key: `${run}-${entry.seq}`, run, entry });
    }
  };
  for (const line of lines) {
    if (line.run !== run) {
      merged.push(line);
      continue;
    }
    upTo(line.type === "entry" ? line.entry.seq : (line.gap.first ?? 0));
    if (line.type === "entry" && found[next]?.seq === line.entry.seq) next += 1;
    if (line.type === "entry" || (line.gap.reason !== "skipped" && line.gap.reason !== "passed")) merged.push(line);
  }
  upTo(Number.POSITIVE_INFINITY);
  return merged;
}
