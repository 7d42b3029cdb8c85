import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { at } from "~/protocol/json";
import type { Entry, SessionRow } from "~/protocol/schema";
import { newestEvents } from "~/trace/event-pages";
import { counted } from "~/words/counted";

/** What the requests of a modern client declare, each for itself. */
export interface Declared {
  requests: number;
  /** Everything that any of them declared, as one value. */
  union: Capabilities;
  /** By its path (`elicitation`, `elicitation.form`), how many requests declared it. */
  counts: ReadonlyMap<string, number>;
  /** Whether these are all of its requests. */
  complete: boolean;
}

interface Capabilities {
  [name: string]: unknown;
}

const isObject = (value: unknown): value is Capabilities => typeof value === "object" && value !== null && !Array.isArray(value);

/** The declarations in the requests among the entries. */
export function declaredIn(events: readonly Entry[], complete: boolean): Declared {
  const requests = events.filter((entry) => entry.kind === "message.received" && entry.rpc === "request");
  const counts = new Map<string, number>();
  const union: Capabilities = {};
  for (const entry of requests) {
    const own = "message" in entry ? at(entry.message, "params", "_meta", "io.modelcontextprotocol/clientCapabilities") : undefined;
    if (isObject(own)) take(own, union, counts, "");
  }
  return { requests: requests.length, union, counts, complete };
}

function take(own: Capabilities, union: Capabilities, counts: Map<string, number>, path: string): void {
  for (const [name, value] of Object.entries(own)) {
    const here = path === "" ? name : `${path}.${name}`;
    counts.set(here, (counts.get(here) ?? 0) + 1);
    if (!isObject(value)) {
      union[name] = value;
      continue;
    }
    const inside = isObject(union[name]) ? union[name] : {};
    union[name] = inside;
    take(value, inside, counts, here);
  }
}

/** `in 1 of 16 requests`, of each capability with what is inside it; the one that most requests have first. */
export function declaredLines({ requests, counts }: Declared): [name: string, says: string][] {
  const often = (path: string) => `in ${counts.get(path) === requests ? "all" : `${counts.get(path)} of`} ${counted(requests, "request")}`;
  const top = [...counts.keys()].filter((path) => !path.includes(".")).toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  return top.map((name) => {
    const inside = [...counts.keys()].filter((path) => path.startsWith(`${name}.`));
    const parts = inside.map((path) => `${path.slice(name.length + 1)}${counts.get(path) === counts.get(name) ? "" : ` ${often(path)}`}`);
    return [name, `${often(name)}${parts.length === 0 ? "" : `, with ${parts.join(", ")}`}`];
  });
}

/** Whether requests of one client differ in what they declare. */
export function differs({ requests, counts }: Declared): boolean {
  return [...counts.values()].some((count) => count !== requests);
}

// more than these tell nothing new
const MOST = 1000;

/** What the requests of a modern client in the log declare; null for a session, and while it is unknown. */
export function useDeclared({ id, era, requests }: Pick<SessionRow, "id" | "era" | "requests">): Declared | null {
  const { data } = useQuery({
    queryKey: ["declared", id, requests],
    queryFn: ({ signal }) => newestEvents({ session: id, kind: "message.received" }, MOST, signal),
    enabled: era === "modern",
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
  });
  return useMemo(() => (data === undefined ? null : declaredIn(data.events, data.complete)), [data]);
}
