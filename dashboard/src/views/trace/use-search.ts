import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { get } from "~/protocol/client";
import type { Entry, SearchPage } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";

// each count looks at all of the log
const PACE = 4_000;
// how far a search goes on by itself, in pages: as far as people read, or as far as repeats are counted
const BY_ITSELF = 2;
const FOR_REPEATS = 3;
// each page looks at all of the log, so what is counted comes in as few as may be; the server gives no more entries at once
const AT_ONCE = 5_000;
// the page keeps some entries fewer of the feed than it had; so many of these, and the search is made again
const LOST = 5_000;

/** What the server found in the whole of its log. */
export interface Search {
  /** Null until the first answer, and where nothing is asked. */
  counts: { matched: number; total: number } | null;
  /** Oldest first. */
  entries: readonly Entry[];
  busy: boolean;
  error: string | null;
  /** Looks further back; null at the end. */
  more: (() => void) | null;
}

interface Options {
  run: string;
  line: string;
  by: "exchange" | "entry";
  /** The oldest entry that the page has without a search, and the newest of the log. */
  oldest: number;
  end: number;
  /** Whether everything is to be found, to count what repeats. */
  whole: boolean;
}

/** The search of the log for a filter line; an empty line asks nothing. */
export function useSearch({ run, line, by, oldest, end, whole }: Options): Search {
  const enabled = line !== "" && run !== "";
  const { data, error, isFetching, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ["search", run, by, line, whole, Math.floor(oldest / LOST)],
    queryFn: ({ signal, pageParam }) => get<SearchPage>("/search", { filter: line, by, before: pageParam, limit: whole ? AT_ONCE : null }, signal),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }, _pages, before) => (next === null || next === before ? undefined : next),
    enabled,
    // what comes later the feed brings
    staleTime: Number.POSITIVE_INFINITY,
  });
  const pages = enabled ? data?.pages : undefined;
  const count = pages?.length ?? 0;
  const first = pages?.[0];
  useRefresh(["counted"], end, PACE);
  // the search has counted too: it is asked again only of a log that has grown since
  const counted = useQuery({
    queryKey: ["counted", run, by, line],
    queryFn: ({ signal }) => get<SearchPage>("/search", { filter: line, by, limit: 0 }, signal),
    enabled: enabled && first !== undefined && first.last < end,
    placeholderData: keepPreviousData,
  });
  const counts = counted.isPlaceholderData ? (first ?? counted.data) : (counted.data ?? first);
  useEffect(() => {
    if (count > 0 && count < (whole ? FOR_REPEATS : BY_ITSELF) && hasNextPage && !isFetching) void fetchNextPage();
  }, [count, whole, hasNextPage, isFetching, fetchNextPage]);
  const entries = useMemo(() => {
    const bySeq = new Map((pages ?? NONE).filter((page) => page.run === run).flatMap(({ events }) => events.map((entry) => [entry.seq, entry] as const)));
    return [...bySeq.values()].toSorted((a, b) => a.seq - b.seq);
  }, [pages, run]);
  const more = useMemo(() => (hasNextPage && enabled ? () => void fetchNextPage() : null), [hasNextPage, enabled, fetchNextPage]);
  return { counts: enabled && counts !== undefined ? counts : null, entries, busy: isFetching, error: error?.message ?? null, more };
}

const NONE: readonly SearchPage[] = [];
