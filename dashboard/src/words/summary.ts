import { brief, scalarText } from "~/protocol/json";
import type * as Api from "~/protocol/schema";
import { isMessage } from "~/trace/entry";
import { formatDuration } from "~/ui/time-format";
import { describeDispatch } from "./dispatches";
import { list, ofMessage, progress, quoted, stateMark, type Summary } from "./message-summary";
import { causeOf, stateOf } from "./states";
import { cameFrom, counted, shareText } from "./text";

/** What an entry says beside its kind or method, in one line. `method` is that of the request where the entry is an answer. */
export function summaryOf(fact: Api.Entry, method: string | null): Summary {
  switch (fact.kind) {
    case "message.received":
    case "message.emitted":
    case "host.message":
      return ofMessage(fact, method);
    case "message.dropped":
      return { mark: { text: fact.why, tone: "bad" }, text: ofMessage(fact, method).text };
    case "message.delivered":
      return { text: `${range(fact.first, fact.last)} of ${fact.stream === null ? "the response" : `stream ${fact.stream}`}` };
    case "message.unreadable":
      return { mark: { text: fact.fault, tone: "bad" }, text: list(fact.problem, cameBytes(fact), fact.head) };
    case "message.refused":
      return { mark: { text: fact.refusal, tone: "bad" }, text: fact.problem };
    default:
      return ofHttp(fact) ?? ofConnection(fact) ?? ofCall(fact) ?? ofStream(fact) ?? ofDispatch(fact) ?? ofTheRest(fact);
  }
}

/** A kind of entry in words: `http.request` is "HTTP request". */
export function kindOf(kind: Api.Entry["kind"]): string {
  return kind.replace(/^http\b/, "HTTP").replaceAll(/[._]/g, " ");
}

/** What kind of message it is, by its method; the kind of any other entry. */
export function titleOf(fact: Api.Entry, method: string | null): string {
  if (!isMessage(fact)) return kindOf(fact.kind);
  return method === null ? fact.rpc : fact.rpc === "notification" ? method : `${method} ${fact.rpc}`;
}

/** The same as `summaryOf` in plain text, for places that do not show the method and the id in columns of their own. */
export function describe(fact: Api.Entry, method: string | null): string {
  const { mark, text } = summaryOf(fact, method);
  if (!isMessage(fact)) return list(mark?.text, text);
  const title = titleOf(fact, method);
  return list(fact.kind === "message.dropped" ? `${title} not sent` : title, fact.id !== null && `id ${scalarText(fact.id)}`, mark?.text, text);
}

function range(first: number, last: number): string {
  return first === last ? `message ${first}` : `messages ${first} to ${last}`;
}

function cameBytes({ size, declared }: Api.MessageUnreadable): string {
  return declared === null || declared === size ? counted(size, "byte") : `${size} of ${declared} bytes came`;
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
      return { text: list(`by ${fact.by}`, counted(fact.messages, "message")) };
    case "socket.opened":
      return { text: `the listener accepted a connection from ${fact.client}` };
    case "socket.closed":
      return { text: list(`by ${fact.by}`, counted(fact.requests, "request")) };
    case "socket.refused":
      return { mark: { text: fact.status === null ? "closed" : String(fact.status), tone: "bad" }, text: `the listener refused it: ${fact.why}` };
    default:
      return null;
  }
}

function ofConnection(fact: Api.Entry): Summary | null {
  switch (fact.kind) {
    case "connection.opened":
      return { mark: { text: fact.transport, tone: "info" }, text: list(fact.connection, fact.client !== fact.transport && cameFrom(fact)) };
    case "connection.closed": {
      const mark = fact.code === null ? {} : { mark: { text: String(fact.code), tone: isOrderly(fact.code) ? ("neutral" as const) : ("bad" as const) } };
      return { ...mark, text: list(fact.connection, `by ${fact.by}`, counted(fact.messages, "message")) };
    }
    case "websocket.frame":
      return {
        ...(fact.refused !== null && { mark: { text: "refused", tone: "bad" as const } }),
        text: list(`${fact.opcode} frame ${fact.direction}`, counted(fact.size, "byte"), fact.refused),
      };
    case "stdio.changed":
      return { mark: { text: stateOf(fact.what).label, tone: "neutral" }, text: list(`process ${fact.pid}`, fact.status !== null && `exit status ${fact.status}`, `${counted(fact.stderr_lines, "line")} on standard error`) };
    case "request.repeated":
      return { mark: { text: "maybe sent twice", tone: "warn" }, text: list(fact.method, `id ${scalarText(fact.id)}`, `the same bytes as #${fact.first}`, fact.first_exchange !== null && `of request ${fact.first_exchange}`, `${fact.after_ms} ms later`) };
    case "forwarding.begun":
      return { mark: { text: "forwarded", tone: "info" }, text: list(`process ${fact.pid} at ${fact.address}`, `run ${fact.run}`, `mcp-probe ${fact.program}`, fact.taken > 0 && `goes on after entry ${fact.taken} of its log`) };
    case "forwarding.missed":
      return { mark: { text: "missing", tone: "bad" }, text: `${fact.entries} entries of this process did not come` };
    case "forwarding.ended":
      return { text: list(`by ${fact.by}`, `up to entry ${fact.taken} of its log`) };
    case "client.process":
      return { mark: { text: stateOf(fact.what).label, tone: "neutral" }, text: list(`process ${fact.pid}`, fact.status !== null && `exit status ${fact.status}`, fact.signal, fact.asked) };
    default:
      return null;
  }
}

function ofCall(fact: Api.Entry): Summary | null {
  switch (fact.kind) {
    case "call.started":
      return { text: list(fact.tool ?? fact.method, fact.progress_token !== null && `token ${scalarText(fact.progress_token)}`, fact.task && `task ${fact.task}`) };
    case "call.progressed":
      return { text: `${progress(fact.progress, fact.total, fact.message)} · without a token` };
    case "call.cancelled":
      return { text: list(`by ${causeOf(fact.by)}`, quoted(fact.reason), !fact.effect && "without effect: it was over already") };
    case "call.settled":
      return { mark: stateMark(fact.outcome), text: settled(fact) };
    default:
      return null;
  }
}

function settled(fact: Api.CallSettled): string {
  return list(
    fact.cancelled_by !== null && `by ${causeOf(fact.cancelled_by)}`,
    fact.steps_done !== null && `after ${shareText(fact.steps_done, fact.steps_total)} steps`,
    fact.scope_exit_ms !== null && `stopped in ${formatDuration(fact.scope_exit_ms)}`,
    fact.sent_after_cancel > 0 && `${counted(fact.sent_after_cancel, "message")} sent afterwards`,
    formatDuration(fact.duration_ms),
    fact.answered ? "answered" : "not answered",
  );
}

function ofStream(fact: Api.Entry): Summary | null {
  switch (fact.kind) {
    case "stream.opened":
      return { text: list(fact.stream, fact.purpose) };
    case "stream.ended":
      return { text: list(fact.stream, counted(fact.messages, "message")) };
    case "stream.resumed":
      return { mark: { text: "resumed", tone: "info" }, text: list(fact.stream, `after message ${fact.after}`, `${fact.waiting} waiting`) };
    case "stream.lost":
      return { mark: { text: stateOf(fact.why).label, tone: "bad" }, text: list(fact.stream, `${counted(fact.messages, "message")} never sent`) };
    case "stream.control":
      return { mark: { text: fact.what, tone: "neutral" }, text: list(CONTROLS[fact.what], fact.event_id !== null && `id ${fact.event_id}`, fact.retry_ms !== null && `retry after ${fact.retry_ms} ms`) };
    default:
      return null;
  }
}

const CONTROLS: Readonly<Record<string, string>> = {
  priming: "an event with an id and no data was sent",
  retry: "the client was told when to connect again",
  comment: "a comment kept the connection alive",
};

function ofDispatch(fact: Api.Entry): Summary | null {
  const text = describeDispatch(fact);
  const mark = markOfDispatch(fact);
  return text === null ? null : { ...(mark !== null && { mark }), text };
}

// RFC 6455, section 7.4: done, or going away
const ORDERLY = new Set([1000, 1001]);

/** Whether a close code of a WebSocket tells of an end that nobody has to look into. */
export function isOrderly(code: number): boolean {
  return ORDERLY.has(code);
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
