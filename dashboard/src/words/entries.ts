import { brief, scalarText } from "~/protocol/json";
import type * as Api from "~/protocol/schema";
import { isMessage, type Of, type Viewed } from "~/trace/entry";
import { formatDuration, formatLimit } from "~/ui/time-format";
import { list, ofMessage, progress, quoted, stateMark, type Summary } from "./messages";
import { stateOf } from "./states";
import { cameFrom, counted, shareText } from "./text";

type Kind = Api.Entry["kind"];
type Words<Each extends Kind> = (fact: Of<Each>, method: string | null) => Summary;

/** What an entry says beside its kind or method, in one line. `method` is that of the request where the entry is an answer. */
export function summaryOf(fact: Viewed, method: string | null): Summary {
  // a newer server may have kinds that this page does not know
  const words = Object.hasOwn(WORDS, fact.kind) ? (WORDS[fact.kind] as Words<Kind>) : null;
  return words === null ? { text: brief(fact) } : words(fact, method);
}

/** A kind of entry in words: `http.request` is "HTTP request". */
export function kindOf(kind: Kind): string {
  return kind.replace(/^http\b/, "HTTP").replaceAll(/[._]/g, " ");
}

/** What kind of message it is, by its method; the kind of any other entry. */
export function titleOf(fact: Api.Entry, method: string | null): string {
  if (!isMessage(fact)) return kindOf(fact.kind);
  return method === null ? fact.rpc : fact.rpc === "notification" ? method : `${method} ${fact.rpc}`;
}

/** The same as `summaryOf` in plain text, for places that do not show the method and the id in columns of their own. */
export function describe(fact: Viewed, method: string | null): string {
  const { mark, text } = summaryOf(fact, method);
  if (!isMessage(fact)) return list(mark?.text, text);
  const title = titleOf(fact, method);
  return list(fact.kind === "message.dropped" ? `${title} not sent` : title, fact.id !== null && `id ${scalarText(fact.id)}`, mark?.text, text);
}

function client(fact: Api.SessionOpened | Api.ClientSeen): Summary {
  return { text: list(`${fact.client_name} ${fact.client_version}`, fact.revision, fact.transport !== "http" && `over ${fact.transport}`, `capabilities ${brief(fact.capabilities, 80)}`) };
}

/** The words of each kind. */
const WORDS: { readonly [Each in Kind]: Words<Each> } = {
  "message.received": ofMessage,
  "message.emitted": ofMessage,
  "host.message": ofMessage,
  "message.dropped": (fact, method) => ({ mark: { text: fact.why, tone: "neutral" }, text: ofMessage(fact, method).text }),
  "message.delivered": ({ first, last, stream }) => ({ text: `${first === last ? `message ${first}` : `messages ${first} to ${last}`} of ${stream === null ? "the response" : `stream ${stream}`}` }),
  "message.unreadable": ({ fault, problem, size, declared, head }) => ({
    mark: { text: fault, tone: "bad" },
    text: list(problem, declared === null || declared === size ? counted(size, "byte") : `${size} of ${declared} bytes came`, head),
  }),
  "message.refused": (fact) => ({ mark: { text: fact.refusal, tone: "bad" }, text: fact.problem }),

  "http.request": (fact) => ({ text: list(`${fact.method} ${fact.path}${fact.query && `?${fact.query}`}`, `HTTP/${fact.http_version}`, cameFrom(fact)) }),
  "http.response": ({ status, problem, content_type }) => ({ mark: { text: String(status), tone: status >= 400 ? "bad" : "good" }, text: list(problem, content_type) }),
  "http.closed": ({ by, messages }) => ({ text: list(`by ${by}`, counted(messages, "message")) }),
  "socket.opened": (fact) => ({ text: `TCP connection from ${fact.client}` }),
  "socket.closed": ({ by, requests }) => ({ text: list(`by ${by}`, counted(requests, "request")) }),
  "socket.refused": ({ status, why }) => ({ mark: { text: status === null ? "closed" : String(status), tone: "bad" }, text: `the listener refused it: ${why}` }),

  "connection.opened": (fact) => ({ mark: { text: fact.transport, tone: "info" }, text: list(fact.connection, fact.client !== fact.transport && cameFrom(fact)) }),
  "connection.closed": ({ connection, by, code, messages }) => ({
    ...(code !== null && { mark: { text: String(code), tone: isOrderly(code) ? "neutral" : "bad" } }),
    text: list(connection, `by ${by}`, counted(messages, "message")),
  }),
  "websocket.frame": ({ opcode, direction, size, refused }) => ({
    ...(refused !== null && { mark: { text: "refused", tone: "bad" } }),
    text: list(`${opcode} frame ${direction}`, counted(size, "byte"), refused),
  }),
  "stdio.changed": ({ what, pid, status, stderr_lines }) => ({
    mark: { text: stateOf(what).label, tone: "neutral" },
    text: list(`process ${pid}`, status !== null && `exit status ${status}`, `${counted(stderr_lines, "line")} on standard error`),
  }),
  "request.repeated": ({ method, id, first, first_exchange, after_ms }) => ({
    mark: { text: "maybe sent twice", tone: "warn" },
    text: list(method, `id ${scalarText(id)}`, `the same bytes as #${first}`, first_exchange !== null && `of request ${first_exchange}`, `${after_ms} ms later`),
  }),
  "forwarding.begun": ({ pid, address, run, program, taken }) => ({
    mark: { text: "forwarded", tone: "info" },
    text: list(`process ${pid} at ${address}`, `run ${run}`, `mcp-probe ${program}`, taken > 0 && `goes on after entry ${taken} of its log`),
  }),
  "forwarding.missed": ({ entries }) => ({ mark: { text: "missing", tone: "bad" }, text: `${entries} entries of this process did not come` }),
  "forwarding.ended": ({ by, taken }) => ({ text: list(`by ${by}`, `up to entry ${taken} of its log`) }),
  "client.process": ({ what, pid, status, signal, asked }) => ({ mark: { text: stateOf(what).label, tone: "neutral" }, text: list(`process ${pid}`, status !== null && `exit status ${status}`, signal, asked) }),

  "call.started": ({ tool, method, progress_token, task }) => ({ text: list(tool ?? method, progress_token !== null && `token ${scalarText(progress_token)}`, task && `task ${task}`) }),
  "call.progressed": (fact) => ({ text: `${progress(fact.progress, fact.total, fact.message)} · without a token` }),
  "call.cancelled": ({ view, reason, effect }) => ({ text: list(view.cancelled_how, quoted(reason), !effect && NO_EFFECT) }),
  "call.settled": (fact) => ({ mark: stateMark(fact.outcome), text: settled(fact) }),
  "task.changed": ({ status, tool, message, task }) => ({ mark: stateMark(status), text: list(tool, quoted(message), task) }),
  "task.removed": ({ why, task }) => ({ mark: stateMark("removed"), text: list(why, task) }),

  "stream.opened": ({ stream, purpose }) => ({ text: list(stream, purpose) }),
  "stream.ended": ({ stream, messages }) => ({ text: list(stream, counted(messages, "message")) }),
  "stream.resumed": ({ stream, after, waiting }) => ({ mark: { text: "resumed", tone: "info" }, text: list(stream, `after message ${after}`, `${waiting} waiting`) }),
  "stream.lost": ({ stream, why, messages }) => ({ mark: { text: stateOf(why).label, tone: "bad" }, text: list(stream, `${counted(messages, "message")} never sent`) }),
  "stream.control": ({ what, event_id, retry_ms }) => ({ mark: { text: what, tone: "neutral" }, text: list(CONTROLS[what], event_id !== null && `id ${event_id}`, retry_ms !== null && `retry after ${retry_ms} ms`) }),

  "dispatch.sent": ({ host, dispatch, tool, idle_ms, ceiling_ms }) => ({
    text: `${host === null ? `to ${tool} of this server` : `to host ${host} as ${dispatch}`}, idle deadline ${formatLimit(idle_ms)}, ceiling ${formatLimit(ceiling_ms)}`,
  }),
  "dispatch.extended": ({ reports, deadline, due_ms }) => ({
    text: `by progress, ${counted(reports, "report")} so far; the ${deadline === "ceiling" ? "ceiling" : "idle deadline"} is next, ${formatLimit(due_ms)} after the start`,
  }),
  "dispatch.expired": ({ deadline, idle_ms, ceiling_ms, elapsed_ms, reports }) => ({
    mark: { text: deadline, tone: "bad" },
    text: `${deadline === "ceiling" ? `the ceiling of ${formatLimit(ceiling_ms)} has passed` : `silent for ${formatLimit(idle_ms)}, the idle deadline`}, after ${formatDuration(elapsed_ms)} and ${counted(reports, "report")}`,
  }),
  "dispatch.settled": ({ outcome, elapsed_ms, reports, sent, coalesced, invalid }) => ({
    text: [
      `${stateOf(outcome).label} after ${formatDuration(elapsed_ms)}`,
      counted(reports, "report"),
      `${sent} sent to the client`,
      ...(coalesced === 0 ? [] : [`${coalesced} coalesced`]),
      ...(invalid === 0 ? [] : [`${invalid} invalid`]),
    ].join(", "),
  }),
  "dispatch.cancelled": ({ host, dispatch, view, reason }) => ({ text: list(`host ${host} is told to stop ${dispatch}`, `cancelled ${view.cancelled_how}`, quoted(reason)) }),
  "dispatch.stopped": (fact) => ({
    mark: { text: stateOf(fact.how).label, tone: fact.how === "acknowledged" ? "good" : "warn" },
    text: `${stopped(fact)}${fact.late === 0 ? "" : `; ${counted(fact.late, "late message")} dropped`}`,
  }),
  "dispatch.late": ({ host, dispatch, what }) => ({ text: `host ${host} sent ${LATE[what] ?? what} for ${dispatch}, which is over; dropped` }),

  "host.connected": (fact) => ({ text: `${fact.connection} ${cameFrom(fact)}, not registered yet` }),
  "host.registered": ({ connection, host, version, library, tools, replaced }) => {
    const what = [host, version, library === null ? null : `(${library})`].filter((part) => part !== null).join(" ");
    return { text: `${connection} is ${what}${replaced === null ? "" : `, in place of ${replaced}`}, with ${counted(tools.length, "tool")}: ${tools.join(", ")}` };
  },
  "host.updated": ({ host, tools }) => ({ text: `${host} offers ${counted(tools.length, "tool")} now: ${tools.join(", ")}` }),
  "host.misuse": ({ connection, what, detail }) => ({ mark: { text: "misuse", tone: "warn" }, text: `${connection}, ${what}: ${detail}` }),
  "host.closed": ({ host, connection, by, code, failed, late }) => ({
    ...(failed > 0 && { mark: { text: "calls failed", tone: "bad" } }),
    text: [
      `${host ?? "a host without a name"} (${connection})`,
      `by ${by}`,
      ...(code === null ? [] : [`code ${code}`]),
      ...(failed === 0 ? [] : [`${counted(failed, "call")} failed with it`]),
      ...(late === 0 ? [] : [`${counted(late, "late message")} dropped in all`]),
    ].join(", "),
  }),

  "session.opened": client,
  "client.seen": client,
  "session.closed": (fact) => ({ mark: stateMark("ended"), text: fact.why }),
  "client.misuse": ({ what, detail, clause }) => ({ mark: { text: what, tone: "warn" }, text: list(detail, clause) }),
  "limit.reached": ({ limit, value }) => ({ mark: { text: limit, tone: "bad" }, text: `at ${value}` }),
  "audit.state": ({ state, why, lost }) => ({ mark: stateMark(state), text: list(why, lost > 0 && `${lost} rows lost`) }),
  "server.state": ({ state }) => ({ mark: stateMark(state), text: "" }),
};

export const NO_EFFECT = "without effect: it was over already";

const CONTROLS: Readonly<Record<string, string>> = {
  priming: "an event with an id and no data was sent",
  retry: "the client was told when to connect again",
  comment: "a comment kept the connection alive",
};

const LATE: Readonly<Record<string, string>> = { progress: "progress", result: "a result", error: "an error" };

function settled(fact: Of<"call.settled">): string {
  return list(
    fact.view.cancelled_how,
    fact.steps_done !== null && `after ${shareText(fact.steps_done, fact.steps_total)} steps`,
    fact.scope_exit_ms !== null && `stopped in ${formatDuration(fact.scope_exit_ms)}`,
    fact.sent_after_cancel > 0 && `${counted(fact.sent_after_cancel, "message")} sent afterwards`,
    formatDuration(fact.duration_ms),
    fact.answered ? "answered" : unanswered(fact.outcome),
  );
}

/** Why a request that ended so has no answer. */
export function unanswered(outcome: string): string {
  if (outcome === "cancelled") return "no answer, as the cancellation asks";
  return outcome === "disconnected" ? "no answer, as the client was gone" : "not answered";
}

/** What became of a cancelled dispatch at its host. */
export function stopped({ host, dispatch, how, after_ms }: Api.DispatchStopped): string {
  const after = formatDuration(after_ms);
  switch (how) {
    case "acknowledged":
      return `host ${host} has stopped ${dispatch}, ${after} after tool.cancel`;
    case "answered":
      return `host ${host} did not stop ${dispatch} but came to its end, ${after} after tool.cancel`;
    case "unanswered":
      return `host ${host} has not said in ${after} that ${dispatch} has stopped; its place is given back`;
    case "never_sent":
      return `${dispatch} was still waiting here; host ${host} never heard of it`;
    case "host_gone":
      return `host ${host} was gone before it said that ${dispatch} has stopped`;
    default:
      return `${dispatch} of host ${host}: ${how}`;
  }
}

// RFC 6455, section 7.4: done, or going away
const ORDERLY = new Set([1000, 1001]);

const isOrderly = (code: number) => ORDERLY.has(code);
