import { useInfiniteQuery } from "@tanstack/react-query";
import { get } from "~/api/client";
import type { CallPage } from "~/api/schema";
import { useRefresh } from "~/api/use-refresh";

const PAGE = 50;
// with the live tail on, how often the pages in view are asked for at most, in milliseconds
const PACE = 1000;

/**
 * The calls that a question (`filters.questionOf`) finds, page by page, newest first.
 *
 * `tail` is another value whenever calls may have changed, and constant without the live tail.
 */
export function useAudit(question: URLSearchParams, tail: unknown) {
  const asked = question.toString();
  useRefresh(["calls"], tail, PACE);
  return useInfiniteQuery({
    queryKey: ["calls", asked],
    queryFn: ({ pageParam, signal }) =>
      get<CallPage>("/calls", { ...Object.fromEntries(new URLSearchParams(asked)), limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}
