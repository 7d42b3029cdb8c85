import { type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { get } from "~/protocol/client";
import type { Entry } from "~/protocol/schema";

/** How one entry of the current run is asked for; it never changes. */
export function entryQuery(run: string, seq: number) {
  return {
    queryKey: ["event", run, seq],
    queryFn: ({ signal }) => get<Entry>(`/events/${seq}`, {}, signal),
    enabled: run !== "",
    staleTime: Number.POSITIVE_INFINITY,
  } satisfies UseQueryOptions<Entry>;
}

/** One entry of the current run. */
export function useEntry(run: string, seq: number) {
  return useQuery(entryQuery(run, seq));
}
