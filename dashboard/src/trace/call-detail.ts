import { useQuery } from "@tanstack/react-query";
import { get } from "~/protocol/client";
import type { CallDetail, ExchangeRow } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import type { Viewed } from "./entry";

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
