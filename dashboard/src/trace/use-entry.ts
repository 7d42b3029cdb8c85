import { type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { get } from "~/protocol/client";
import type { Viewed } from "./entry";

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
