import { quoted } from "~/protocol/filter";

// what links had for each filter before there was the filter line, and what is the same in it
const KEYS: Readonly<Record<string, string>> = { session: "client", label: "client", direction: "direction", method: "method", text: "text", call: "call", task: "task", exchange: "exchange", stream: "stream", connection: "connection" };

/** The kinds of each group that the server counts, by the names that links have; `messages` includes deliveries. */
export const GROUPS = {
  messages: ["message", "request"],
  HTTP: ["http", "socket"],
  calls: ["call", "dispatch"],
  tasks: ["task"],
  streams: ["stream", "connection", "websocket", "stdio"],
  sessions: ["session", "client.seen", "client.process", "forwarding"],
  hosts: ["host"],
  server: ["server", "audit"],
} as const;

/** The filter line of an address: its own, and what pages that link here say in parameters of their own. */
export function lineOf(params: URLSearchParams): string {
  const words = Object.entries(KEYS).flatMap(([name, key]) =>
    params.getAll(name).map((value) => (key === "text" ? quoted(value) : `${key}:${quoted(value)}`)),
  );
  return [...words, ...shown(params.get("show")), params.get("filter") ?? ""].filter((part) => part !== "").join(" ");
}

/** The parameters that are in the line. */
export const IN_LINE = [...Object.keys(KEYS), "show", "filter"];

function shown(show: string | null): readonly string[] {
  if (show === null) return [];
  const names = show.toLowerCase().split(",");
  const kinds = Object.entries(GROUPS).flatMap(([name, group]) => (names.includes(name.toLowerCase()) ? group : []));
  return [kinds.length > 0 ? `kind:${kinds.join(",")}` : "", names.includes("problems") ? "problem:any" : ""];
}
