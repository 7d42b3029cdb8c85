import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Entry } from "~/protocol/schema";
import { newestEvents } from "~/trace/event-pages";

/** How many readers went on with a stream that an earlier one had begun. */
export function countResumed(events: readonly Entry[]): number {
  const read = new Set<string>();
  // readers of which `stream.resumed` tells, and the head of their response as well
  const told = new Set(events.map((event) => (event.kind === "stream.resumed" ? `${event.stream} ${event.exchange}` : "")));
  let resumed = 0;
  for (const event of events) {
    if (event.kind === "stream.resumed") resumed += 1;
    if (event.kind !== "http.response" || event.stream === null || event.content_type !== "text/event-stream") continue;
    if (read.has(event.stream) && !told.has(`${event.stream} ${event.exchange}`)) resumed += 1;
    read.add(event.stream);
  }
  return resumed;
}

// more readers than a session has in an hour of trying
const MOST = 1000;

/** The same for a session, from the event log of the server; null while it is unknown. */
export function useResumed(session: string, requests: number): number | null {
  const { data } = useQuery({
    queryKey: ["resumed", session, requests],
    queryFn: ({ signal }) => newestEvents({ session, kind: "http.response,stream.resumed" }, MOST, signal),
    placeholderData: (before, query) => (query?.queryKey[1] === session ? before : undefined),
  });
  // 0 of a part of the log says nothing about the rest
  return useMemo(() => (data === undefined ? null : countResumed(data.events) || (data.complete ? 0 : null)), [data]);
}
