import { expect, test } from "vitest";
import type { CallRow, Entry } from "~/protocol/schema";
import { callRow, cancelledCall, entry, progressEntry } from "~/testing/rows";
import { conclusionOf } from "./conclusion";

const taken = (seq: number, cause: number, first: number, last = first) => entry(seq, seq, "message.delivered", { cause, first, last, stream: "p1" });
const progress = (seq: number, step: number) => progressEntry(seq, seq, step, 5, { stream: "p1", position: step });
const settled = (sent_after_cancel: number) => entry(90, 90, "call.settled", { sent_after_cancel });
const expired = (which: string) => entry(80, 80, "dispatch.expired", { deadline: which, idle_ms: 30_000, ceiling_ms: 300_000, elapsed_ms: 30_002, reports: 3 });
const question = (seq: number) => entry(seq, seq, "message.emitted", { rpc: "request", method: "elicitation/create", id: 1, message: {}, stream: "p1", position: 2 });
const unheard = (seq: number) => entry(seq, seq, "call.progressed", { progress: seq, total: 5, message: null });

const NO_PROGRESS = { emitted: 0, delivered: 0 };
const text = (says: string) => ({ content: [{ type: "text", text: says }], isError: true });
const gone = (more: Partial<CallRow> = {}) => cancelledCall({ outcome: "disconnected", cancelled_by: "disconnect", cancel_reason: "the client closed the response stream", ...more });

const CASES: readonly (readonly [name: string, call: CallRow, entries: readonly Entry[], says: string])[] = [
  [
    "all progress was delivered",
    callRow({ duration_ms: 312, emitted: 3, delivered: 3 }),
    [progress(1, 1), taken(2, 1, 1), progress(3, 2), progress(4, 3), taken(5, 3, 2, 3)],
    "answered after 312 ms; 3 of 3 progress notifications delivered",
  ],
  [
    "some progress was lost",
    callRow({ duration_ms: 312, emitted: 2, delivered: 1, answer_delivered: false }),
    [progress(1, 1), taken(2, 1, 1), progress(3, 2)],
    "answered after 312 ms; the answer was not delivered; 1 of 2 progress notifications delivered",
  ],
  [
    "other messages came between",
    callRow({ duration_ms: 312, emitted: 2, delivered: 2, coalesced: 4 }),
    [progress(1, 1), question(2), taken(3, 1, 1, 2)],
    "answered after 312 ms; 1 of 1 progress notification and 1 of 1 other message delivered, 4 merged into later ones",
  ],
  ["the row is newer than its evidence", callRow({ duration_ms: 312 }), [progress(1, 1)], "answered after 312 ms; 10 of 10 messages beside the answer delivered"],
  ["nothing was reported", callRow({ duration_ms: 6.136, ...NO_PROGRESS }), [], "answered after 6.1 ms"],
  [
    "nobody gave a token",
    callRow({ duration_ms: 101, ...NO_PROGRESS, progress_token: null, progress_token_type: null }),
    [unheard(1), unheard(2)],
    "answered after 101 ms; 2 progress reports not sent, as the client gave no token",
  ],
  ["a task", callRow({ duration_ms: 162, ...NO_PROGRESS, task: "t1", answer_delivered: false }), [], "completed as a task after 162 ms"],
  ["it ended, but nobody could be answered", callRow({ duration_ms: 50, ...NO_PROGRESS, answered: false }), [], "completed after 50 ms; no answer was sent"],
  [
    "bad arguments",
    callRow({ outcome: "tool_error", ...NO_PROGRESS, result: text("Invalid arguments: steps must be an integer\n from 1 to 100") }),
    [],
    "tool error: Invalid arguments: steps must be an integer from 1 to 100",
  ],
  ["an error without a text", callRow({ outcome: "tool_error", ...NO_PROGRESS, result: { content: [], isError: true } }), [], 'tool error: {"content":[],"isError":true}'],
  [
    "an error of the protocol",
    callRow({ outcome: "protocol_error", ...NO_PROGRESS, result: { error: { code: -32_602, message: "Unknown tool: nope" } } }),
    [],
    "protocol error -32602: Unknown tool: nope",
  ],
  [
    "cancelled by notification",
    cancelledCall({ ...NO_PROGRESS, cancel_latency_ms: 2.4, cancel_reason: null, steps_total: 20 }),
    [settled(0)],
    "cancelled by the client after 4 of 20 steps, stopped in 2.4 ms, nothing sent afterwards",
  ],
  [
    "cancelled with a reason, and something was sent",
    cancelledCall(NO_PROGRESS),
    [settled(2)],
    'cancelled by the client ("the user pressed Stop") after 4 of 10 steps, stopped in 2.1 ms, 2 messages sent afterwards',
  ],
  [
    "a task was cancelled",
    cancelledCall({ ...NO_PROGRESS, cancelled_by: "tasks_cancel", cancel_reason: null, steps_done: null, steps_total: null, task: "t1", answered: true }),
    [settled(0)],
    "cancelled by the client with tasks/cancel after 902 ms, stopped in 2.1 ms, nothing sent afterwards",
  ],
  ["the entry that says what was sent is gone", cancelledCall({ ...NO_PROGRESS, cancelled_by: "session_end", cancel_reason: "deleted" }), [], "cancelled because its session ended after 4 of 10 steps, stopped in 2.1 ms"],
  ["a task outlived its ttl", cancelledCall({ ...NO_PROGRESS, cancelled_by: "ttl", task: "t1" }), [], "cancelled because the time to live of its task had passed after 4 of 10 steps, stopped in 2.1 ms"],
  ["the server ended", cancelledCall({ ...NO_PROGRESS, cancelled_by: "shutdown", answered: true }), [settled(0)], "cancelled by the shutdown of the server after 4 of 10 steps, stopped in 2.1 ms, answered with an error"],
  ["the tool gave up", cancelledCall({ ...NO_PROGRESS, cancelled_by: null, cancel_latency_ms: null, answered: true, answer_delivered: true, result: text("The person declined") }), [], "cancelled by the tool itself: The person declined"],
  ["a deadline for silence", callRow({ outcome: "timed_out", ...NO_PROGRESS, cancelled_by: "deadline", cancel_latency_ms: 11.6, steps_done: 3 }), [expired("idle")], "timed out: no progress for 30 s, after 3 of 10 steps, stopped in 12 ms, answered with a tool error"],
  ["the ceiling", callRow({ outcome: "timed_out", ...NO_PROGRESS, cancelled_by: "deadline", steps_done: null }), [expired("ceiling")], "timed out: the ceiling of 5 min 00 s passed, answered with a tool error"],
  ["a deadline whose entry is gone", callRow({ outcome: "timed_out", ...NO_PROGRESS, cancelled_by: "deadline", duration_ms: 5000, steps_done: null, answered: false }), [], "timed out: a deadline passed after 5.00 s"],
  ["the client closed the response", gone(NO_PROGRESS), [settled(0)], "the client closed the response stream after 4 of 10 steps, stopped in 2.1 ms, nothing sent afterwards"],
  ["nobody told why the client was gone", gone({ ...NO_PROGRESS, cancel_reason: null, cancel_latency_ms: null }), [], "the client was gone after 4 of 10 steps"],
  [
    "the client is asked by the answer",
    callRow({ outcome: "input_required", duration_ms: 26.2, ...NO_PROGRESS, result: { inputRequests: { form: { method: "elicitation/create" }, again: { method: "elicitation/create" } } } }),
    [],
    "input required: asked the client for elicitation/create after 26 ms; the answer comes with its next request",
  ],
  ["the server died", callRow({ outcome: "lost", duration_ms: null, ...NO_PROGRESS, answered: false, steps_done: 1, steps_total: null }), [], "lost: the server ended before it recorded the end of the call, after 1 step"],
  ["it runs", callRow({ outcome: null, duration_ms: null, ...NO_PROGRESS, answered: false, steps_done: 3 }), [], "running, 3 of 10 steps so far"],
  ["a task waits for its client", callRow({ outcome: null, ...NO_PROGRESS, task: "t1", answered: true, steps_done: 3 }), [question(4)], "running as a task; waits for the client's answer to elicitation/create"],
  ["its question was answered", callRow({ outcome: null, ...NO_PROGRESS, answered: false, steps_done: null }), [question(4), entry(5, 5, "message.received", { cause: 4 })], "running"],
  ["it was asked to stop", callRow({ outcome: null, ...NO_PROGRESS, answered: false }), [entry(5, 5, "call.cancelled", { by: "notification", effect: true })], "asked to stop by notification; the work has not stopped yet"],
];

test.each(CASES)("%s", (_name, call, entries, says) => {
  expect(conclusionOf(call, entries)).toBe(says);
});
