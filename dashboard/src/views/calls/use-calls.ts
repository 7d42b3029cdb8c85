import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { get } from "~/protocol/client";
import type { CallPage, CallRow, ToolList } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import { useFeed } from "~/trace/use-feed";
import { merged } from "./calls";

const PAGE = 50;
// how often the newest page is asked for at most, in milliseconds
const PACE = 1000;

/** The calls that a question (`filters.questionOf`) finds, newest first: page by page, and those that start or change meanwhile. */
export function useCalls(question: URLSearchParams) {
  const asked = question.toString();
  const rows = useFeed((snapshot) => snapshot.tables.calls);
  const [first] = useState(rows);
  const ask = (cursor: string | null, signal: AbortSignal) => get<CallPage>("/calls", { ...Object.fromEntries(new URLSearchParams(asked)), limit: PAGE, cursor }, signal);
  const history = useInfiniteQuery({
    queryKey: ["calls", asked],
    queryFn: ({ pageParam, signal }) => ask(pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  useRefresh(["newest calls"], rows, PACE);
  const newest = useQuery({
    queryKey: ["newest calls", asked],
    queryFn: ({ signal }) => ask(null, signal),
    // a question that was refused would be refused again
    enabled: rows !== first && history.isSuccess,
  });
  const { refetch } = history;
  const older = useMemo(() => (history.data?.pages ?? []).flatMap((page) => page.calls), [history.data]);
  // more calls came at once than a page has: there may be some between
  const torn = isTorn(newest.data, older);
  useEffect(() => {
    if (torn) void refetch();
  }, [torn, refetch]);
  const calls = useMemo(() => merged([older, newest.data?.calls ?? []], rows, asked === ""), [older, newest.data, rows, asked]);
  return { calls, history, rows };
}

function isTorn(newest: CallPage | undefined, older: readonly CallRow[]): boolean {
  if (newest === undefined || newest.next === null || older.length === 0) return false;
  const known = new Set(older.map(({ id }) => id));
  return !newest.calls.some(({ id }) => known.has(id));
}

/** The names of the tools that the server has, and of those that were called, in the order of the alphabet. */
export function useKnownTools(calls: readonly CallRow[]): readonly string[] {
  const { data } = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get<ToolList>("/tools", {}, signal) });
  return useMemo(() => [...new Set([...(data?.tools ?? []).map(({ name }) => name), ...calls.map(({ tool }) => tool)])].toSorted(), [data, calls]);
}
