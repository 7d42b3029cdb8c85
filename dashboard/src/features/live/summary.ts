import { cameFrom } from "~/api/client-name";
import { describeDispatch } from "~/api/dispatches";
import type * as Api from "~/api/schema";
import { at, brief, scalarText } from "~/ui/json";
import { shareText } from "~/ui/share";
import { stateOf } from "~/ui/states";
import type { Tone } from "~/ui/states";
import { formatDuration } from "~/ui/time-format";
import { isOrderly } from "./facts";
import type { Relations } from "./relations";

export interface Summary {
  /** A word that says how it went, before the rest. */
  mark?: { text: string; tone: Tone };
  text: string;
}

/** One line of what an entry says, made from nothing but the entry and the request that it answers. */
export function summaryOf(fact: Api.Entry, relations: Relations): Summary {
  switch (fact.kind) {
    case "message.received":
    case "message.emitted":
    case "host.message":
      return ofMessage(fact, relations.methodOf(fact));
    case "message.dropped":
      return { mark: { text: fact.why, tone: "bad" }, text: ofMessage(fact, relations.methodOf(fact)).text };
    case "message.delivered":
      return { text: `${range(fact.first, fact.last)} of ${fact.stream === null ? "the response" : `stream ${fact.stream}`}` };
    default:
      return ofHttp(fact) ?? ofCall(fact) ?? ofDispatch(fact) ?? ofTheRest(fact);
  }
}

function range(first: number, last: number): string {
  return first === last ? `message ${first}` : `messages ${first} to ${last}`;
}

const list = (...parts: readonly (string | false | null | undefined)[]) => parts.filter(Boolean).join(" · ");

type Message = Pick<Api.MessageReceived, "rpc" | "message">;

function ofMessage({ rpc, message }: Message, method: string | null): Summary {
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

function progress(done: unknown, total: unknown, message: unknown): string {
  const far = total === undefined || total === null ? brief(done) : `${brief(done)}/${brief(total)}`;
  return message === undefined || message === null ? far : `${far} ${brief(message)}`;
}

// where everything stands that the draft "Streams" does not define
const DRAFT = "mcp-probe/stream";

// an id of a draft stream has 256 random bits; its beginning tells it from others
const shortId = (id: unknown) => (typeof id === "string" && id.length > 12 ? `${id.slice(0, 8)}…` : brief(id));

const quoted = (value: unknown) => (value === undefined || value === null ? null : brief(value));

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
  for (const name of ["tools", "resources", "resourceTemplates", "prompts", "tasks", "streams"]) {
    const found = at(result, name);
    if (Array.isArray(found)) return { text: list(`${found.length} ${name}`, at(result, "nextCursor") !== undefined && "more follow") };
  }
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

function ofHttp(fact: Api.Entry): Summary | null {
  switch (fact.kind) {
    case "http.request":
      return { text: list(`${fact.method} ${fact.path}${fact.query && `?${fact.query}`}`, `HTTP/${fact.http_version}`, cameFrom(fact)) };
    case "http.response": {
      const tone = fact.status >= 400 ? "bad" : "good";
      return { mark: { text: String(fact.status), tone }, text: list(fact.problem, fact.content_type) };
    }
    case "http.closed":
      return { text: list(`by ${fact.by}`, count(fact.messages, "message")) };
    case "connection.opened":
      return { mark: { text: fact.transport, tone: "info" }, text: list(fact.connection, fact.client !== fact.transport && cameFrom(fact)) };
    case "connection.closed": {
      const mark = fact.code === null ? {} : { mark: { text: String(fact.code), tone: isOrderly(fact.code) ? ("neutral" as const) : ("bad" as const) } };
      return { ...mark, text: list(fact.connection, `by ${fact.by}`, count(fact.messages, "message")) };
    }
    default:
      return null;
  }
}

const count = (number: number, thing: string) => `${number} ${thing}${number === 1 ? "" : "s"}`;

function ofCall(fact: Api.Entry): Summary | null {
  switch (fact.kind) {
    case "call.started":
      return { text: list(fact.tool ?? fact.method, fact.progress_token !== null && `token ${scalarText(fact.progress_token)}`, fact.task && `task ${fact.task}`) };
    case "call.progressed":
      return { text: `${progress(fact.progress, fact.total, fact.message)} · without a token` };
    case "call.cancelled":
      return { text: list(`by ${fact.by}`, quoted(fact.reason), !fact.effect && "without effect: it was over already") };
    case "call.settled":
      return { mark: stateMark(fact.outcome), text: settled(fact) };
    default:
      return null;
  }
}

function settled(fact: Api.CallSettled): string {
  return list(
    fact.cancelled_by !== null && `cancelled by ${fact.cancelled_by}`,
    fact.steps_done !== null && `${shareText(fact.steps_done, fact.steps_total)} steps`,
    formatDuration(fact.duration_ms),
    fact.answered ? "answered" : "not answered",
    fact.sent_after_cancel > 0 && `${fact.sent_after_cancel} sent after the cancellation`,
  );
}

function ofDispatch(fact: Api.Entry): Summary | null {
  const text = describeDispatch(fact);
  const mark = markOfDispatch(fact);
  return text === null ? null : { ...(mark !== null && { mark }), text };
}

function markOfDispatch(fact: Api.Entry): NonNullable<Summary["mark"]> | null {
  switch (fact.kind) {
    case "dispatch.expired":
      return { text: fact.deadline, tone: "bad" };
    case "dispatch.stopped":
      return { text: stateOf(fact.how).label, tone: fact.how === "acknowledged" ? "good" : "warn" };
    case "host.misuse":
      return { text: "misuse", tone: "warn" };
    case "host.closed":
      return fact.failed > 0 ? { text: "calls failed", tone: "bad" } : null;
    default:
      return null;
  }
}

function stateMark(state: string): { text: string; tone: Tone } {
  const { label, tone } = stateOf(state);
  return { text: label, tone };
}

function ofTheRest(fact: Api.Entry): Summary {
  switch (fact.kind) {
    case "session.opened":
    case "client.seen":
      return { text: list(`${fact.client_name} ${fact.client_version}`, fact.revision, fact.transport !== "http" && `over ${fact.transport}`, `capabilities ${brief(fact.capabilities, 80)}`) };
    case "session.closed":
      return { mark: stateMark("ended"), text: fact.why };
    case "task.changed":
      return { mark: stateMark(fact.status), text: list(fact.tool, quoted(fact.message), fact.task) };
    case "task.removed":
      return { mark: stateMark("removed"), text: list(fact.why, fact.task) };
    case "stream.opened":
      return { text: list(fact.stream, fact.purpose) };
    case "stream.ended":
      return { text: list(fact.stream, count(fact.messages, "message")) };
    case "stream.resumed":
      return { mark: { text: "resumed", tone: "info" }, text: list(fact.stream, `after message ${fact.after}`, `${fact.waiting} waiting`) };
    case "stream.lost":
      return { mark: { text: stateOf(fact.why).label, tone: "bad" }, text: list(fact.stream, `${count(fact.messages, "message")} never sent`) };
    case "client.misuse":
      return { mark: { text: fact.what, tone: "warn" }, text: list(fact.detail, fact.clause) };
    case "limit.reached":
      return { mark: { text: fact.limit, tone: "bad" }, text: `at ${fact.value}` };
    case "audit.state":
      return { mark: stateMark(fact.state), text: list(fact.why, fact.lost > 0 && `${fact.lost} rows lost`) };
    case "server.state":
      return { mark: stateMark(fact.state), text: "" };
    default:
      return { text: brief(fact) };
  }
}
