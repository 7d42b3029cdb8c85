import { isMessage, type Span } from "~/trace/entry";
import type { Tone } from "~/ui/badge";
import { stateIn, stateOf } from "./states";
import { kindOf, summaryOf } from "./entries";

/** What an exchange is: for a message its method, for what is none the line of HTTP or what happened. */
export interface Title {
  /** A method, or `GET /mcp`. */
  name: string;
  /** What it is about, as far as the page has that. */
  text: string;
}

const UNREADABLE: Readonly<Record<string, string>> = { syntax: "not JSON", encoding: "not UTF-8", incomplete: "incomplete", size: "too large" };

export function titleOfSpan({ row, head }: Span): Title {
  const { request, unreadable, target } = row;
  if (unreadable !== null) return { name: request ?? "message", text: UNREADABLE[unreadable] ?? "not read" };
  const method = row.method ?? head?.view.method ?? null;
  if (head !== null && isMessage(head)) {
    const text = summaryOf(head, method).text;
    if (head.rpc === "request" || head.rpc === "notification") return { name: method ?? head.rpc, text };
    return { name: method === null ? head.rpc : `${head.rpc === "error" ? "error" : "answer"} to ${method}`, text };
  }
  if (method !== null) return { name: method, text: target };
  if (request !== null) return { name: request, text: "" };
  return head === null ? { name: "", text: "" } : { name: kindOf(head.kind), text: summaryOf(head, null).text };
}

export interface Ending {
  /** A word with a colour, where there is more to say than that it ended. */
  mark: { text: string; tone: Tone } | null;
  text: string;
}

const PLAIN = new Set(["answered", "done"]);
// the text of these is that of the answer
const REPEATED = new Set(["error", "tool_error", "protocol_error", "refused"]);

/** How an exchange ended, in the server's words, with what its answer says; `ended` says that the log has ended. */
export function endingOf({ row: { ending, method, progress }, answer }: Span, ended = false): Ending {
  const { text } = ending;
  const state = stateIn(ending.state, ended);
  const reported = progress > 0 && text === "" ? `${progress} progress` : "";
  const said = answer === null || REPEATED.has(state) ? "" : summaryOf(answer, method).text;
  return { mark: PLAIN.has(state) ? null : { text: stateOf(state).label, tone: toneOfEnding({ ...ending, state }) }, text: [text, reported, said].filter((part) => part !== "").join(" · ") };
}

/** How bad an ending is. A cancellation is no fault, but a message that was sent after it is. */
export const toneOfEnding = ({ state, sent_after: after }: { state: string; sent_after: number }): Tone => (after > 0 ? "bad" : stateOf(state).tone);

// the text of these continues the state: "cancelled by the client"
const READS_ON = new Set(["cancelled", "error", "protocol_error"]);

/** The state and its text as a sentence without its full stop, as the terminal has it: `tool error: no such file`. */
export function sentenceOf({ state, text }: { state: string; text: string }): string {
  const { label } = stateOf(state);
  return text === "" ? label : `${label}${READS_ON.has(state) ? " " : ": "}${text}`;
}
