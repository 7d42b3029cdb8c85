import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Gap, Kept, Span, Viewed } from "./entry";
import type { Snapshot } from "./feed";
import { Loader, type Loading, type Query } from "./loader";
import { reaches, type RunView, type TraceView } from "./trace";
import { useTheFeed } from "./use-feed";

/** A part of the time, in seconds since the epoch. */
export interface Range {
  from: number;
  until: number;
}

interface Options {
  filter: string;
  by: Query["by"];
  /** Whether everything that passes is to be found, to count what repeats. */
  whole?: boolean;
  /** Only what lies in it, or reaches into it; null for all. */
  range: Range | null;
}

/** What of the log a view shows. */
export interface Traced {
  /** The newest snapshot, or the one at which the view was paused. */
  snapshot: Snapshot;
  /** The present run of the server; empty before it is known. */
  run: string;
  /** The oldest entry of it from which on all are here. */
  first: number | null;
  /** The spans or the entries (`by`) that pass, oldest first, and the gaps between them. */
  spans: readonly Span[];
  entries: readonly Kept[];
  gaps: readonly Gap[];
  loading: Loading;
  loader: Loader;
  paused: boolean;
  setPaused: (paused: boolean) => void;
  /** How many entries came since the pause. */
  behind: number;
}

/** The entries and exchanges that pass a filter line, in a range of time, while they come. */
export function useTrace({ filter, by, whole = false, range }: Options): Traced {
  const feed = useTheFeed();
  const [loader] = useState(() => new Loader(feed));
  const live = useSyncExternalStore(feed.subscribe, feed.snapshot);
  const loading = useSyncExternalStore(loader.subscribe, loader.state);
  const [held, setHeld] = useState<Snapshot | null>(null);
  const setPaused = useCallback((paused: boolean) => setHeld(paused ? feed.snapshot() : null), [feed]);
  const snapshot = held ?? live;
  const run = snapshot.hello?.run ?? "";
  useEffect(() => {
    if (run !== "" || filter === "") loader.find(run, { line: filter, by, whole });
  }, [loader, run, filter, by, whole]);
  useEffect(
    () => () => {
      loader.stop();
      feed.filter("");
    },
    [loader, feed],
  );
  const { trace } = snapshot;
  const spans = useMemo(() => (by === "exchange" ? spansOf(trace, range) : []), [trace, by, range]);
  const entries = useMemo(() => (by === "entry" ? entriesOf(trace, range) : []), [trace, by, range]);
  const gaps = useMemo(() => trace.runs.flatMap((each) => each.gaps), [trace.runs]);
  const first = trace.runs.at(-1)?.first ?? null;
  return { snapshot, run, first, spans, entries, gaps, loading, loader, paused: held !== null, setPaused, behind: live.trace.total - trace.total };
}

const inRange = ({ from, until }: { from: number; until: number | null }, range: Range) => from <= range.until && (until === null || until >= range.from);

/** The spans that pass the line of a trace, oldest first. */
export function spansOf({ runs, passing }: TraceView, range: Range | null): readonly Span[] {
  return runs.flatMap(({ spans, first }) =>
    spans.filter((span) => (passing.line === "" ? reaches(span, first ?? 0) : passing.spans.has(span.key)) && (range === null || inRange(span, range))),
  );
}

/** The same for entries. */
export function entriesOf({ runs, passing }: TraceView, range: Range | null): readonly Kept[] {
  return runs.flatMap(({ entries, first }) =>
    entries.filter(
      ({ key, entry }) => (passing.line === "" ? entry.seq >= (first ?? 0) : passing.entries.has(key)) && (range === null || inRange({ from: entry.at, until: entry.at }, range)),
    ),
  );
}

/** The entries of some spans of one run, in their order: those of their exchanges, and of their calls wherever these went on. */
export function entriesOfSpans({ entries }: RunView, spans: readonly Span[]): readonly Viewed[] {
  const exchanges = new Set(spans.map(({ row }) => row.exchange));
  const calls = new Set(spans.flatMap(({ row }) => row.call ?? []));
  return entries.flatMap(({ entry }) => (exchanges.has(entry.view.exchange) || (entry.call !== null && calls.has(entry.call)) ? [entry] : []));
}
