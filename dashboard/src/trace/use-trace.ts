import { useQuery, type UseQueryOptions } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { get, type Query, useRefresh, useSavedFile } from "~/protocol/client";
import type { CallDetail, EventPage, ExchangeRow } from "~/protocol/schema";
import type { Gap, Kept, Span, Viewed } from "./entry";
import { type Snapshot, useFeed, useTheFeed } from "./feed";
import { Loader, type Loading } from "./loader";
import { type By, reaches, type RunView, type TraceView } from "./trace";

/** A part of the time, in seconds since the epoch. */
export interface Range {
  from: number;
  until: number;
}

interface Options {
  filter: string;
  by: By;
  /** Whether everything that passes is to be found, to count what repeats. */
  whole?: boolean;
  /** Only what lies in it, or reaches into it; null for all. */
  range: Range | null;
}

/** What of the log a view shows. */
export interface Traced {
  /** The newest snapshot, or the one at which the view was paused, with what was loaded since. */
  snapshot: Snapshot;
  /** The present run of the server; empty before it is known. */
  run: string;
  /** The oldest entry of it from which on all are here. */
  first: number | null;
  /** While `searching`, what is here may pass an earlier line; where the search has `failed`, nothing is. */
  state: "searching" | "failed" | "ready";
  /** The spans that pass, oldest first: of all of the time, and those of the range. */
  all: readonly Span[];
  spans: readonly Span[];
  /** The entries that pass, where they are asked for (`by`), oldest first. */
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
  const answered = ({ trace: { passing } }: Snapshot) => passing.line === filter && (filter === "" || passing.searched.has(by));
  // what another filter finds is not in the snapshot of the pause: that of the end of its search is held then
  if (held !== null && !answered(held)) {
    if (answered(live) && loading.busy !== "search") setHeld(live);
  } else if (held !== null && held.trace.added !== live.trace.added && answered(live)) {
    setHeld({ ...held, trace: withLoaded(held.trace, live.trace) });
  }
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
  const { query, error } = loading;
  const state = answered(snapshot) ? "ready" : error !== null && query.line === filter && query.by === by ? "failed" : "searching";
  const all = useMemo(() => (state === "failed" ? [] : spansOf(trace, null)), [state, trace]);
  const spans = useMemo(() => (range === null ? all : all.filter((span) => inRange(span, range))), [all, range]);
  const entries = useMemo(() => (state === "failed" || by !== "entry" ? [] : entriesOf(trace, range)), [state, trace, by, range]);
  const gaps = useMemo(() => trace.runs.flatMap((each) => each.gaps), [trace.runs]);
  const first = trace.runs.at(-1)?.first ?? null;
  return { snapshot, run, first, state, all, spans, entries, gaps, loading, loader, paused: held !== null, setPaused, behind: live.trace.total - trace.total };
}

/** A view of an earlier moment with what was loaded since then, and without what the feed brought. */
function withLoaded(before: TraceView, now: TraceView): TraceView {
  const runs = before.runs.map((run) => {
    const later = now.runs.find((each) => each.run === run.run);
    if (later === undefined) return run;
    const newest = Math.max(run.entries.at(-1)?.entry.seq ?? 0, ...run.gaps.map(({ last }) => last ?? 0));
    return {
      ...run,
      // the later one has let its oldest entries go where it has too many
      first: run.first === null || later.first === null ? run.first : Math.min(run.first, later.first),
      entries: joined(run.entries, later.entries, newest, ({ entry }) => entry.seq),
      spans: joined(run.spans, later.spans, newest, ({ row }) => row.began.seq),
      gaps: later.gaps.filter(({ key }) => run.gaps.some((gap) => gap.key === key)),
    };
  });
  return { ...now, runs, total: before.total };
}

/** Some items, and others up to a number that are not among them, in their order. */
function joined<Item>(items: readonly Item[], others: readonly Item[], newest: number, numberOf: (item: Item) => number): readonly Item[] {
  const byNumber = new Map([...others.filter((item) => numberOf(item) <= newest), ...items].map((item) => [numberOf(item), item]));
  return [...byNumber.values()].toSorted((a, b) => numberOf(a) - numberOf(b));
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

/** When the log ends, in seconds since the epoch: its last entry in a saved file, and null where it grows. */
export function useEnd(): number | null {
  const grows = useSavedFile() == null;
  // where it grows, each entry would render what asks for this
  return useFeed(({ trace }) => (grows ? null : (trace.runs.at(-1)?.entries.at(-1)?.entry.at ?? null)));
}

/** Whether the log has ended, so that nothing in it goes on. */
export const useEnded = (): boolean => useEnd() !== null;

// an answer holds all entries of the call, so it is not asked for with each of them
const PACE = 300;

/** A call with its evidence, as far as the log has it; `exchanges` are made of these entries alone. */
export type CallWithEvidence = Omit<CallDetail, "evidence"> & { evidence: { complete: boolean; events: readonly Viewed[]; exchanges: readonly ExchangeRow[] } };

/**
 * One call with its evidence; null for none.
 *
 * `version` is anything that is another one when the call has changed, such as its row of the feed: then it is asked again.
 */
export function useCallDetail(id: string | null, version: unknown) {
  useRefresh(["call"], version, PACE);
  return useQuery({
    queryKey: ["call", id],
    queryFn: ({ signal }) => get<CallWithEvidence>(`/calls/${encodeURIComponent(id ?? "")}`, { view: 1 }, signal),
    enabled: id !== null,
  });
}

/** How one entry of the current run is asked for; but for its delivery it never changes. */
export function entryQuery(run: string, seq: number) {
  return {
    queryKey: ["event", run, seq],
    queryFn: ({ signal }) => get<Viewed>(`/events/${seq}`, { view: 1 }, signal),
    enabled: run !== "",
    staleTime: Number.POSITIVE_INFINITY,
  } satisfies UseQueryOptions<Viewed>;
}

/** One entry of the current run. */
export function useEntry(run: string, seq: number) {
  return useQuery(entryQuery(run, seq));
}

/** A number larger than any of a log, in as many digits as the API reads. */
const NEWEST = 999_999_999_999_999;
// how many pages are asked for at most: a rare kind may be in none of them
const PAGES = 20;

interface Found {
  /** Newest first. */
  events: readonly Viewed[];
  /** Whether the log was read back to its first entry, and nothing had been pushed out of it. */
  complete: boolean;
}

/** The newest entries that pass the filters of `query`, at most `most` of them, over as many pages as that takes. */
export async function newestEvents(query: Query, most: number, signal: AbortSignal): Promise<Found> {
  const events: Viewed[] = [];
  let before: number | null = NEWEST;
  let evicted = false;
  for (let pages = 0; pages < PAGES && before !== null && events.length < most; pages += 1) {
    const page: EventPage = await get<EventPage>("/events", { ...query, before, limit: most - events.length, view: 1 }, signal);
    events.push(...(page.events as Viewed[]));
    before = page.next;
    evicted = page.gap !== null;
  }
  return { events, complete: before === null && !evicted };
}
