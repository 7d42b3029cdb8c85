import { type Direction, directionOf } from "~/api/evidence";
import type { Entry } from "~/api/schema";
import { isOrderly } from "~/api/summary";
import { at, writeJson } from "~/ui/json";

/** What the chips of the view show or hide. An entry is in the group of its kind, and in `problems` as well if it is one. */
export const GROUPS = ["messages", "http", "calls", "tasks", "streams", "sessions", "hosts", "server", "problems"] as const;
export type Group = (typeof GROUPS)[number];

const GROUP_OF: Readonly<Record<string, Group>> = {
  message: "messages",
  request: "messages",
  http: "http",
  socket: "http",
  call: "calls",
  dispatch: "calls",
  host: "hosts",
  task: "tasks",
  stream: "streams",
  connection: "streams",
  websocket: "streams",
  stdio: "streams",
  session: "sessions",
  "client.seen": "sessions",
  "client.process": "sessions",
  "client.misuse": "problems",
  report: "sessions",
  limit: "problems",
  server: "server",
  audit: "server",
};

/** The groups of an entry as bits, in the order of `GROUPS`. */
export function groupsOf(entry: Entry): number {
  const own = GROUP_OF[entry.kind] ?? GROUP_OF[entry.kind.split(".", 1)[0] ?? ""];
  return (own === undefined ? 0 : bit(own)) | (isProblem(entry) ? bit("problems") : 0);
}

export function bit(group: Group): number {
  return 1 << GROUPS.indexOf(group);
}

// what a tool host answers to what it was told to stop: docs/tool-hosts.md, tool.cancel
const HAS_STOPPED = 2;

const BAD_OUTCOMES = new Set(["tool_error", "protocol_error", "timed_out", "disconnected"]);

function isProblem(entry: Entry): boolean {
  switch (entry.kind) {
    case "client.misuse":
    case "limit.reached":
    case "report.missed":
    case "request.repeated":
    case "message.dropped":
    case "message.unreadable":
    case "message.refused":
    case "socket.refused":
    case "stream.lost":
    case "dispatch.expired":
    case "host.misuse":
      return true;
    case "message.received":
    case "message.emitted":
      return entry.rpc === "error" || entry.rpc === "invalid";
    case "websocket.frame":
      return entry.refused !== null;
    case "host.message":
      return (entry.rpc === "error" && at(entry.message, "error", "code") !== HAS_STOPPED) || entry.rpc === "invalid";
    case "dispatch.stopped":
      return entry.how === "unanswered" || entry.how === "host_gone";
    case "host.closed":
      return entry.failed > 0 || (entry.code !== null && !isOrderly(entry.code));
    case "connection.closed":
      return entry.code !== null && !isOrderly(entry.code);
    case "http.response":
      return entry.status >= 400 || entry.problem !== null;
    case "call.settled":
      return BAD_OUTCOMES.has(entry.outcome);
    case "task.changed":
      return entry.status === "failed";
    case "audit.state":
      return entry.state !== "ok";
    default:
      return false;
  }
}

interface Facts {
  direction: Direction | null;
  groups: number;
  /** The whole entry as JSON in lower case, made when somebody searches. */
  text: string | null;
}

const remembered = new WeakMap<Entry, Facts>();

/** What an entry alone tells, worked out once. */
export function factsOf(entry: Entry): Facts {
  const before = remembered.get(entry);
  if (before !== undefined) return before;
  const facts = { direction: directionOf(entry), groups: groupsOf(entry), text: null };
  remembered.set(entry, facts);
  return facts;
}

/** Whether the entry has `text`, which is in lower case, anywhere in its JSON, as the API's `text=` has it. */
export function contains(entry: Entry, text: string): boolean {
  const facts = factsOf(entry);
  facts.text ??= writeJson(entry).toLowerCase();
  return facts.text.includes(text);
}
