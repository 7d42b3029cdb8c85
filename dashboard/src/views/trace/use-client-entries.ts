import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { get } from "~/protocol/client";
import type { Entry, EventPage } from "~/protocol/schema";
import { NEWEST } from "~/trace/event-pages";
import { useEntry } from "~/trace/use-entry";
import { useLogEnd } from "~/trace/use-judged";

const PAGE = 500;
/** As many entries of a client are loaded at most: with usual logs, all of them. */
export const MOST = 20_000;
// how often the end of the log is asked for at most, in milliseconds
const PACE = 400;
// after failures it is asked for half as often each time, and every 13 seconds at least
const MOST_DOUBLINGS = 5;

interface Entries {
  /** In the order of the log. */
  entries: readonly Entry[];
  /** Whether older ones are on their way. */
  loading: boolean;
  /** Whether the first ones are missing: pushed out of the log, or more than are loaded. */
  cut: boolean;
  error: Error | null;
}

/** The entries of a client or a session of the current run: those there were, page by page, and those that come. */
export function useClientEntries(run: string, session: string): Entries {
  const history = useInfiniteQuery({
    queryKey: ["ladder", run, session],
    queryFn: ({ pageParam, signal }) => get<EventPage>("/events", { session, before: pageParam, limit: PAGE }, signal),
    initialPageParam: NEWEST,
    getNextPageParam: (page) => page.next,
    enabled: run !== "" && session !== "",
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const { data, hasNextPage, isFetching, fetchNextPage } = history;
  const before = useMemo(() => (data?.pages ?? []).flatMap((page) => page.events).toReversed(), [data]);
  const more = hasNextPage && before.length < MOST;
  useEffect(() => {
    if (more && !isFetching) void fetchNextPage();
  }, [more, isFetching, fetchNextPage]);
  const since = useNewer(run, session, data?.pages[0]?.last);
  const handshake = useHandshake(run, before.find((entry) => entry.kind === "session.opened")?.cause ?? null);
  const entries = useMemo(() => [...handshake, ...[...before, ...since].slice(-MOST)], [handshake, before, since]);
  const evicted = data?.pages.at(-1)?.gap != null || before.length + since.length > MOST;
  return { entries, loading: history.isPending || more, cut: !more && (hasNextPage || evicted), error: history.error };
}

interface Newer {
  key: string;
  entries: readonly Entry[];
  reached: number;
}

/** What was added to the log behind `from`, as it comes. */
function useNewer(run: string, session: string, from: number | undefined): readonly Entry[] {
  const key = `${run} ${session} ${from}`;
  const [held, setHeld] = useState<Newer>({ key, entries: [], reached: from ?? 0 });
  const known = held.key === key ? held : { key, entries: [], reached: from ?? 0 };
  const { reached } = known;
  const behind = useLogEnd() > reached;
  const [failures, setFailures] = useState(0);
  useEffect(() => {
    if (from === undefined || !behind) return undefined;
    const gone = new AbortController();
    const ask = async () => {
      const page = await get<EventPage>("/events", { session, since: reached, limit: PAGE }, gone.signal);
      setFailures(0);
      setHeld((now) => ({ key, entries: [...(now.key === key ? now.entries : []), ...page.events].slice(-MOST), reached: Math.max(reached, page.next ?? page.last) }));
    };
    const timer = setTimeout(() => {
      ask().catch(() => {
        if (!gone.signal.aborted) setFailures((count) => count + 1);
      });
    }, PACE * 2 ** Math.min(failures, MOST_DOUBLINGS));
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [key, session, from, behind, reached, failures]);
  return known.entries;
}

/** The `initialize` of a session, which came before there was one. */
function useHandshake(run: string, seq: number | null): readonly Entry[] {
  const { data } = useEntry(seq === null ? "" : run, seq ?? 0);
  return useMemo(() => (data === undefined ? [] : [data]), [data]);
}
