import { at } from "~/protocol/json";
import type { CallSettled, Entry } from "~/protocol/schema";
import { isMessage } from "~/trace/evidence";
import type { Tone } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { ofMessage, quoted } from "~/words/message-summary";
import { shareText } from "~/words/share";
import { stateOf } from "~/words/states";
import { summaryOf } from "~/words/summary";
import { type Exchange, type ExchangeFacts, factsOf, remembering } from "./exchanges";

/** What was asked: a method and what stands beside it, or the line of an HTTP request. */
export interface Asked {
  method: string | null;
  /** A word for what is no request, such as `response`. */
  rpc: string | null;
  text: string;
}

/** `methodOfHead` is the method of its head, of a response that of its request. */
export function askedBy(exchange: Exchange, methodOfHead: string | null): Asked {
  const { head } = factsOf(exchange);
  if (head.kind === "http.request") return { method: `${head.method} ${head.path}`, rpc: null, text: "" };
  const { text } = summaryOf(head, methodOfHead);
  if (!isMessage(head)) return { method: head.kind, rpc: null, text };
  const rpc = head.rpc === "request" || (head.rpc === "notification" && methodOfHead !== null) ? null : head.rpc;
  return { method: methodOfHead ?? head.kind, rpc, text: head.rpc === "error" || head.rpc === "response" ? ofMessage(head, methodOfHead).text : text };
}

/** How it ended, in a word with a colour where there is more to say than that it did, and in a line. */
export interface Ending {
  mark: { text: string; tone: Tone } | null;
  text: string;
}

const endings = remembering((exchange: Exchange): Ending => {
  const { mark, text } = makeEnding(exchange);
  return { mark, text: [dropped(exchange), text].filter(Boolean).join(" · ") };
});

export function endingOf(exchange: Exchange): Ending {
  return endings(exchange);
}

/** How many messages reached nobody, and why the first of them. */
function dropped({ entries }: Exchange): string | null {
  const lost = entries.filter((entry) => entry.kind === "message.dropped");
  return lost[0] === undefined || lost.length === entries.length ? null : `${lost.length} dropped: ${lost[0].why}`;
}

function makeEnding(exchange: Exchange): Ending {
  const facts = factsOf(exchange);
  const { settled, response, answers } = facts;
  const misuse = exchange.entries.find((entry) => entry.kind === "client.misuse");
  if (settled !== null && settled.outcome !== "completed") return afterCall(settled, answers);
  const error = answers.find((answer) => isMessage(answer) && answer.rpc === "error");
  if (error !== undefined) {
    const { mark, text } = summaryOf(error, null);
    return { mark: mark ?? null, text };
  }
  if (response !== null && response.status >= 400) return { mark: { text: "refused", tone: "bad" }, text: response.problem ?? "" };
  if (misuse?.kind === "client.misuse") return { mark: { text: misuse.what, tone: "warn" }, text: misuse.detail };
  return settled === null ? plainEnding(facts) : withProgress(facts, settled.task !== null && answers.length === 0 ? "" : textOfAnswers(facts), "completed");
}

/** A call that did not come to its own end: who ended it, how far it was, how fast it stopped. */
function afterCall(settled: CallSettled, answers: readonly Entry[]): Ending {
  const { label, tone } = stateOf(settled.outcome);
  const far = settled.steps_done === null ? null : `${shareText(settled.steps_done, settled.steps_total)} steps`;
  const parts = [
    settled.cancelled_by !== null && settled.outcome === "cancelled" && `by ${settled.cancelled_by}`,
    said(settled) ?? (answers[0] === undefined ? null : summaryOf(answers[0], null).text),
    far,
    settled.scope_exit_ms !== null && `stopped in ${formatDuration(settled.scope_exit_ms)}`,
    settled.sent_after_cancel > 0 && `${settled.sent_after_cancel} sent after it`,
  ];
  return { mark: { text: label, tone }, text: parts.filter(Boolean).join(" · ") };
}

/** What the tool or the person who ended a call said. */
function said({ result, cancel_reason }: CallSettled): string | null {
  const text = at(result, "content", 0, "text") ?? at(result, "error", "message");
  return typeof text === "string" ? text : quoted(cancel_reason);
}

function plainEnding(facts: ExchangeFacts): Ending {
  const { head, request, response, closed, answers, call } = facts;
  if (answers.length > 0) return withProgress(facts, textOfAnswers(facts), null);
  if (call !== null) return withProgress(facts, "", "running");
  if (head.kind === "message.dropped") return { mark: { text: "dropped", tone: "warn" }, text: head.why };
  if (response?.content_type.startsWith("text/event-stream") === true) {
    return closed === null ? { mark: { text: "open", tone: "info" }, text: "event stream" } : { mark: null, text: `event stream ended by ${closed.by}, ${closed.messages} messages` };
  }
  if (isMessage(head) && head.rpc === "request") return { mark: { text: "no answer yet", tone: "neutral" }, text: "" };
  if (request !== null && response === null) return closed === null ? { mark: { text: "no answer yet", tone: "neutral" }, text: "" } : { mark: { text: "no answer", tone: "warn" }, text: `ended by ${closed.by}` };
  return { mark: null, text: "" };
}

function textOfAnswers({ answers, head }: ExchangeFacts): string {
  const [answer] = answers;
  if (answer === undefined) return "";
  return summaryOf(answer, isMessage(head) ? head.method : null).text;
}

function withProgress({ progress }: ExchangeFacts, text: string, state: string | null): Ending {
  const parts = [progress > 0 && `progress × ${progress}`, text].filter(Boolean).join(" · ");
  if (state === null) return { mark: null, text: parts };
  const { label, tone } = stateOf(state);
  return { mark: { text: label, tone }, text: parts };
}
