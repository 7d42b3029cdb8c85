import { useQuery } from "@tanstack/react-query";
import { get } from "~/protocol/client";
import type { CallDetail } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";

// an answer holds all entries of the call, so it is not asked for with each of them
const PACE = 300;

/**
 * One call with its evidence; null for none.
 *
 * `version` is anything that is another one when the call has changed, such as its row of the feed: then it is asked again.
 */
export function useCallDetail(id: string | null, version: unknown) {
  useRefresh(["call"], version, PACE);
  return useQuery({
    queryKey: ["call", id],
    queryFn: ({ signal }) => get<CallDetail>(`/calls/${encodeURIComponent(id ?? "")}`, {}, signal),
    enabled: id !== null,
  });
}
