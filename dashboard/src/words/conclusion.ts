import { at, brief, type JsonNumber } from "~/protocol/json";
import type { CallRow, Entry, MessageEmitted } from "~/protocol/schema";
import { bySeq, messagesOf, sentAfterCancel } from "~/trace/evidence";
import { formatDuration } from "~/ui/time-format";
import { counted } from "./counted";
import { formatLimit } from "./dispatches";

/** What became of a call, in one sentence without its full stop. `entries` is the evidence of the call, as far as it is at hand. */
export function conclusionOf(call: CallRow, entries: readonly Entry[]): string {
  return [ending(call, entries), undelivered(call), messages(call, entries)].filter((part) => part !== "").join("; ");
}

function ending(call: CallRow, entries: readonly Entry[]): string {
  switch (call.outcome) {
    case null:
      return running(call, entries);
    case "completed":
      return call.task === null && call.answered ? `answered after ${took(call)}` : `completed${asTask(call)} after ${took(call)}`;
    case "tool_error":
      return `tool error: ${toolText(call)}`;
    case "protocol_error":
      return `protocol error ${brief(at(call.result, "error", "code"))}: ${line(at(call.result, "error", "message"))}`;
    case "timed_out":
      return listed(`timed out: ${deadline(call, entries)}`, stopped(call), call.answered && "answered with a tool error");
    case "disconnected":
      return listed(`${call.cancel_reason ?? "the client was gone"} ${reached(call)}`, stopped(call), afterwards(entries));
    case "input_required":
      return `input required: asked the client for ${questions(call)} after ${took(call)}; the answer comes with its next request`;
    case "lost":
      return `lost: the server ended before it recorded the end of the call, ${reached(call)}`;
    default:
      return cancelled(call, entries);
  }
}

const listed = (...parts: readonly (string | false)[]) => parts.filter((part) => part !== false && part !== "").join(", ");
const took = ({ duration_ms }: CallRow) => (duration_ms === null ? "an unknown time" : formatDuration(duration_ms));
const asTask = ({ task }: CallRow) => (task === null ? "" : " as a task");

/** `after 4 of 20 steps`; where nobody counted steps, the time. */
function reached(call: CallRow): string {
  if (call.steps_done !== null) return `after ${steps(call.steps_done, call.steps_total)}`;
  return call.duration_ms === null ? "after an unknown time" : `after ${took(call)}`;
}

const steps = (done: JsonNumber, total: JsonNumber | null) => `${done}${total === null ? "" : ` of ${total}`} ${(total ?? done) === 1 ? "step" : "steps"}`;

const WHO: Readonly<Record<string, string>> = {
  notification: "by the client",
  tasks_cancel: "by the client with tasks/cancel",
  ttl: "because the time to live of its task had passed",
  session_end: "because its session ended",
  shutdown: "by the shutdown of the server",
};

// what the server writes where the client gave no reason is no reason of the client
const withReason = ({ cancelled_by: by, cancel_reason: reason }: CallRow) =>
  (by === "notification" || by === "tasks_cancel") && reason !== null ? ` (${brief(reason, 120)})` : "";

function cancelled(call: CallRow, entries: readonly Entry[]): string {
  if (call.outcome !== "cancelled") return `${call.outcome?.replaceAll("_", " ")} ${reached(call)}`;
  if (call.cancelled_by === null) return `cancelled by the tool itself: ${toolText(call)}`;
  const who = WHO[call.cancelled_by] ?? `by ${call.cancelled_by}`;
  const answered = call.answered && call.task === null && "answered with an error";
  return listed(`cancelled ${who}${withReason(call)} ${reached(call)}`, stopped(call), answered || afterwards(entries));
}

const stopped = ({ cancel_latency_ms: latency }: CallRow) => (latency === null ? "" : `stopped in ${formatDuration(latency)}`);

function afterwards(entries: readonly Entry[]): string {
  const sent = sentAfterCancel(entries);
  if (sent === null) return "";
  return sent === 0 ? "nothing sent afterwards" : `${counted(sent, "message")} sent afterwards`;
}

function deadline(call: CallRow, entries: readonly Entry[]): string {
  const expired = entries.findLast((entry) => entry.kind === "dispatch.expired");
  const far = call.steps_done === null ? "" : `, after ${steps(call.steps_done, call.steps_total)}`;
  if (expired === undefined) return `a deadline passed after ${took(call)}${far}`;
  const passed = expired.deadline === "ceiling" ? `the ceiling of ${formatLimit(expired.ceiling_ms)} passed` : `no progress for ${formatLimit(expired.idle_ms)}`;
  return `${passed}${far}`;
}

function questions({ result }: CallRow): string {
  const asked = at(result, "inputRequests");
  if (typeof asked !== "object" || asked === null) return "input";
  const methods = Object.values(asked).map((request: unknown) => line(at(request, "method")));
  return methods.length === 0 ? "nothing more than another request" : [...new Set(methods)].join(" and ");
}

/** What the tool says to the model: the first text of its result. */
function toolText({ result }: CallRow): string {
  const content = at(result, "content");
  const texts = Array.isArray(content) ? content.map((block: unknown) => at(block, "text")).filter((text) => typeof text === "string") : [];
  return line(texts[0] ?? (result === null ? "its result was not kept" : brief(result)));
}

const ROOM = 300;

const line = (value: unknown) => {
  const text = typeof value === "string" ? value.replaceAll(/\s+/g, " ").trim() : brief(value);
  return text.length > ROOM ? `${text.slice(0, ROOM)}…` : text;
};

function running(call: CallRow, entries: readonly Entry[]): string {
  const asked = entries.findLast((entry) => entry.kind === "call.cancelled");
  if (asked?.effect) return `asked to stop by ${asked.by}; the work has not stopped yet`;
  const answered = new Set(entries.filter((entry) => entry.kind === "message.received").map((entry) => entry.cause));
  const question = entries.findLast((entry) => entry.kind === "message.emitted" && entry.rpc === "request" && !answered.has(entry.seq));
  if (question?.kind === "message.emitted") return `running${asTask(call)}; waits for the client's answer to ${question.method}`;
  return call.steps_done === null ? `running${asTask(call)}` : `running${asTask(call)}, ${steps(call.steps_done, call.steps_total)} so far`;
}

/** Of a task, its handle was the answer; of what was cancelled or is lost, none is owed. */
function undelivered(call: CallRow): string {
  if (call.outcome === null || call.task !== null || call.cancelled_by !== null || call.outcome === "lost") return "";
  if (!call.answered) return "no answer was sent";
  return call.answer_delivered ? "" : "the answer was not delivered";
}

function messages(call: CallRow, entries: readonly Entry[]): string {
  const unheard = entries.filter((entry) => entry.kind === "call.progressed").length;
  if (call.emitted === 0) {
    if (unheard === 0 || call.progress_token !== null) return "";
    return `${counted(unheard, "progress report")} not sent, as the client gave no token`;
  }
  const merged = call.coalesced === 0 ? "" : `, ${call.coalesced} merged into later ones`;
  return `${deliveries(call, entries)} delivered${merged}`;
}

/** `5 of 5 progress notifications`. Where entries are missing, or the row is newer than they are, the row counts: all messages alike. */
function deliveries(call: CallRow, entries: readonly Entry[]): string {
  const own = entries.filter(isOwn);
  const progress = own.filter(({ method }) => method === "notifications/progress");
  if (own.length !== call.emitted || progress.length === 0) return `${call.delivered} of ${counted(call.emitted, "message")} beside the answer`;
  const taken = deliveredOf(entries);
  const arrived = progress.filter(({ seq }) => taken.has(seq)).length;
  const told = `${arrived} of ${counted(progress.length, "progress notification")}`;
  const others = own.length - progress.length;
  return others === 0 ? told : `${told} and ${own.filter(({ seq }) => taken.has(seq)).length - arrived} of ${counted(others, "other message")}`;
}

// what the server says by itself about a task or a stream; the row does not count it either
const SERVERS = /^notifications\/(tasks\/status|stream\/)/;

/** Whether the work sent it, beside the answer. */
function isOwn(entry: Entry): entry is MessageEmitted {
  return entry.kind === "message.emitted" && (entry.rpc === "notification" || entry.rpc === "request") && !SERVERS.test(entry.method ?? "");
}

/** The numbers of the messages that a socket took. */
function deliveredOf(entries: readonly Entry[]): ReadonlySet<number> {
  const entryOf = bySeq(entries);
  return new Set(entries.flatMap((entry) => (entry.kind === "message.delivered" ? messagesOf(entry, entryOf).map(({ seq }) => seq) : [])));
}
