import { at, brief } from "~/protocol/json";
import type { MessageReceived } from "~/protocol/schema";
import type { Tone } from "~/ui/badge";
import { stateOf } from "./states";

export interface Summary {
  /** A word that says how it went, before the rest. */
  mark?: { text: string; tone: Tone };
  text: string;
}

/** A state as a mark. */
export function stateMark(state: string): { text: string; tone: Tone } {
  const { label, tone } = stateOf(state);
  return { text: label, tone };
}

/** The parts that there are, in one line. */
export const list = (...parts: readonly (string | false | null | undefined)[]) => parts.filter(Boolean).join(" · ");

type Message = Pick<MessageReceived, "rpc" | "message">;

/** What a message says beside its method; an answer is told by the `method` of its request. */
export function ofMessage({ rpc, message }: Message, method: string | null): Summary {
  if (rpc === "error") return ofError(at(message, "error"));
  if (rpc === "response") return ofResult(at(message, "result"), method);
  if (rpc === "invalid") return { mark: { text: "invalid", tone: "bad" }, text: brief(message) };
  return { text: ofParams(at(message, "params"), method) };
}

function ofError(error: unknown): Summary {
  return { mark: { text: brief(at(error, "code"), 20), tone: "bad" }, text: plain(at(error, "message")) };
}

const plain = (value: unknown) => (typeof value === "string" ? value.slice(0, 400).replaceAll("\n", " ") : brief(value));

function ofParams(params: unknown, method: string | null): string {
  const token = at(params, "_meta", "progressToken");
  const withToken = token === undefined ? null : `token ${brief(token, 40)}`;
  switch (method) {
    case "tools/call": {
      const task = at(params, "task");
      return list(`${plain(at(params, "name"))} ${brief(at(params, "arguments") ?? {})}`, withToken, task !== undefined && `task ${brief(task, 60)}`);
    }
    case "notifications/progress":
      return list(progress(at(params, "progress"), at(params, "total"), at(params, "message")), `token ${brief(at(params, "progressToken"), 40)}`);
    case "tool.dispatch":
      return `${plain(at(params, "tool"))} ${brief(at(params, "arguments") ?? {})}`;
    case "tool.cancel":
      return list(plain(at(params, "dispatch")), plain(at(params, "cause")), quoted(at(params, "reason")));
    case "notifications/cancelled":
      return list(`request ${brief(at(params, "requestId"), 40)}`, quoted(at(params, "reason")));
    case "notifications/tasks/status":
      return list(`task ${plain(at(params, "taskId"))}`, plain(at(params, "status")), quoted(at(params, "statusMessage")));
    case "notifications/message":
      return `${plain(at(params, "level"))} ${brief(at(params, "data"))}`;
    case "notifications/stream/create": {
      const { min, max } = (at(params, "stream", "resumeInterval") ?? {}) as { min?: unknown; max?: unknown };
      return list(shortId(at(params, "stream", "streamId")), `resume after ${brief(min)} s, within ${brief(max)} s`);
    }
    case "notifications/stream/end":
    case "stream/poll":
    case "stream/resume": {
      const received = at(params, "_meta", DRAFT, "received");
      return list(shortId(at(params, "streamId")), received !== undefined && `received ${brief(received)}`);
    }
    case "initialize":
      return list(`${plain(at(params, "clientInfo", "name"))} ${plain(at(params, "clientInfo", "version"))}`, plain(at(params, "protocolVersion")));
    default:
      return list(named(params), withToken);
  }
}

/** How far something got: `4/20 "step 4"`. */
export function progress(done: unknown, total: unknown, message: unknown): string {
  const far = total === undefined || total === null ? brief(done) : `${brief(done)}/${brief(total)}`;
  return message === undefined || message === null ? far : `${far} ${brief(message)}`;
}

// where everything stands that the draft "Streams" does not define
const DRAFT = "mcp-probe/stream";

// an id of a draft stream has 256 random bits; its beginning tells it from others
const shortId = (id: unknown) => (typeof id === "string" && id.length > 12 ? `${id.slice(0, 8)}…` : brief(id));

/** A text as JSON; null for none. */
export const quoted = (value: unknown) => (value === undefined || value === null ? null : brief(value));

// by what a request says it is about; the rest of it is in the entry
function named(params: unknown): string {
  for (const name of ["uri", "name", "taskId", "message", "level"]) {
    const value = at(params, name);
    if (typeof value === "string") return plain(value);
  }
  if (typeof params !== "object" || params === null) return "";
  const rest = Object.fromEntries(Object.entries(params).filter(([name]) => name !== "_meta"));
  return Object.keys(rest).length === 0 ? "" : brief(rest);
}

function ofResult(result: unknown, method: string | null): Summary {
  const task = at(result, "task");
  if (task !== undefined) return { text: list(`task ${plain(at(task, "taskId"))}`, plain(at(task, "status"))) };
  if (at(result, "isError") === true) return { mark: { text: "isError", tone: "bad" }, text: content(result) };
  if (method === "stream/resume" || method === "stream/poll") return ofDraft(result);
  if (method === "initialize") return { text: list(`${plain(at(result, "serverInfo", "name"))}`, plain(at(result, "protocolVersion"))) };
  for (const name of ["tools", "resources", "resourceTemplates", "prompts", "tasks", "streams", "skills"]) {
    const found = at(result, name);
    if (Array.isArray(found)) return { text: list(`${found.length} ${name}`, at(result, "nextCursor") !== undefined && "more follow") };
  }
  const skill = at(result, "skill", "uri");
  if (skill !== undefined) return { text: plain(skill) };
  return { text: at(result, "content") === undefined ? brief(result) : content(result) };
}

/** How a draft stream stands: what is unsent of it. */
function ofDraft(result: unknown): Summary {
  const unsent = [
    ["pendingMessages", "messages wait"],
    ["hasRequest", "a request among them"],
    ["hasError", "an error among them"],
  ].map(([flag = "", says]) => at(result, flag) === true && says);
  return { mark: stateMark(plain(at(result, "status"))), text: list(shortId(at(result, "streamId")), ...unsent) };
}

function content(result: unknown): string {
  const text = at(result, "content", 0, "text");
  if (typeof text === "string") return plain(text);
  return brief(at(result, "structuredContent") ?? at(result, "content"));
}
