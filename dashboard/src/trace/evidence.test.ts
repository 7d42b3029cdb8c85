import { expect, test } from "vitest";
import type { Entry, MessagesDelivered } from "~/protocol/schema";
import { entry, progressEntry } from "~/testing/rows";
import { describe } from "~/words/summary";
import { messagesOf, methodOf, offsetOf, originOf, pipeOf, progressOf, requestOf, bySeq } from "./evidence";

const told = (kind: Entry["kind"], more: object, method: string | null = null) => describe(entry(1, 0, kind, more), method);

test("progress is read wherever it is told, and an unsent report says why", () => {
  expect(progressOf(progressEntry(1, 0, 3, null))).toEqual({ progress: 3, total: null, message: null });
  const dropped = progressEntry(1, 0, 3, 10, { kind: "message.dropped", why: "no stream is open" });
  expect(describe(dropped, "notifications/progress")).toBe("notifications/progress not sent · no stream is open · 3/10 · token 0");
  expect(told("call.progressed", { progress: 1, total: null, message: "one" })).toBe('1 "one" · without a token');
  expect(progressOf(entry(1, 0, "message.received", { rpc: "notification", method: "notifications/progress", message: {} }))).toBeNull();
});

test("ids keep their type", () => {
  const request = { rpc: "request", method: "ping", message: {} };
  expect(told("message.received", { ...request, id: 0 }, "ping")).toBe("ping request · id 0");
  expect(told("message.received", { ...request, id: "0" }, "ping")).toBe('ping request · id "0"');
});

test("a cancellation says who, how long it took, how far it got, and what was sent afterwards", () => {
  const settled = { outcome: "cancelled", answered: false, duration_ms: 400, cancelled_by: "notification", scope_exit_ms: 2.067, steps_done: 4, steps_total: 10, sent_after_cancel: 1 };
  expect(told("call.settled", settled)).toBe(
    "cancelled · cancelled by notification · its scope exited 2.1 ms later · 4/10 steps · 400 ms · not answered · 1 message sent after the cancellation",
  );
  expect(told("call.cancelled", { by: "disconnect", reason: null, effect: false })).toBe("by disconnect · without effect: it was over already");
});

test("what came in and could not be used is told in words", () => {
  const bytes = { fault: "syntax", problem: "it ends too early", head: "{no", size: 3 };
  expect(told("message.unreadable", { ...bytes, declared: 3 })).toBe("syntax · it ends too early · 3 bytes · {no");
  expect(told("message.unreadable", { ...bytes, declared: 9 })).toBe("syntax · it ends too early · 3 of 9 bytes came · {no");
  expect(told("message.refused", { refusal: "unknown_method", problem: "there is no such method" })).toBe("unknown_method · there is no such method");
});

test("what happens on a connection beside its messages is told in words", () => {
  expect(told("socket.opened", { client: "127.0.0.1:9" })).toBe("the listener accepted a connection from 127.0.0.1:9");
  expect(told("socket.closed", { by: "client", requests: 2 })).toBe("by client · 2 requests");
  expect(told("socket.refused", { status: 431, why: "the head is too long" })).toBe("431 · the listener refused it: the head is too long");
  expect(told("socket.refused", { status: null, why: "too many" })).toBe("closed · the listener refused it: too many");
  const frame = { direction: "received", opcode: "ping", size: 4 };
  expect(told("websocket.frame", { ...frame, refused: null })).toBe("ping frame received · 4 bytes");
  expect(told("websocket.frame", { ...frame, refused: "too large" })).toBe("refused · ping frame received · 4 bytes · too large");
  expect(told("stdio.changed", { what: "end_of_input", pid: 7, status: null, stderr_lines: 1 })).toBe("end of input · process 7 · 1 line on standard error");
  expect(told("stdio.changed", { what: "exit", pid: 7, status: 0, stderr_lines: 0 })).toBe("exit · process 7 · exit status 0 · 0 lines on standard error");
  const client = { pid: 9, status: null, signal: null, asked: null };
  expect(told("client.process", { ...client, what: "started", asked: "client http://localhost/mcp" })).toBe("started · process 9 · client http://localhost/mcp");
  expect(told("client.process", { ...client, what: "exited", signal: "SIGKILL" })).toBe("exited · process 9 · SIGKILL");
  expect(told("client.process", { ...client, what: "exited", status: 0 })).toBe("exited · process 9 · exit status 0");
  expect(told("stream.control", { what: "priming", event_id: "p1-0", retry_ms: null })).toBe("priming · an event with an id and no data was sent · id p1-0");
  expect(told("stream.control", { what: "retry", event_id: null, retry_ms: 500 })).toBe("retry · the client was told when to connect again · retry after 500 ms");
});

const emitted = (seq: number, more: object) => entry(seq, 0, "message.emitted", { rpc: "notification", method: "x", id: null, message: {}, ...more });
const delivered = (cause: number | null, more: object) => entry(90, 0, "message.delivered", { cause, event_ids: false, ...more }) as MessagesDelivered;

test("a delivery tells of its cause and of what its stream has up to the last", () => {
  const of = { stream: "p1", call: "c1" };
  const entries = [
    emitted(1, { ...of, position: 1 }),
    emitted(2, { ...of, position: 2 }),
    emitted(3, { ...of, position: 2, session: "s2" }),
    emitted(4, { ...of, position: 3 }),
    emitted(5, { ...of, position: 4 }),
  ];
  const seqs = (delivery: MessagesDelivered) => messagesOf(delivery, bySeq(entries)).map(({ seq }) => seq);
  expect(seqs(delivered(2, { ...of, first: 2, last: 3 }))).toEqual([2, 4]);
  expect(seqs(delivered(5, { ...of, first: 4, last: 4 }))).toEqual([5]);
  expect(seqs(delivered(null, { ...of, first: 1, last: 4 }))).toEqual([]);
});

test("an answer in one piece is delivered as a whole, and no other exchange's", () => {
  const entries = [7, 8, 7].map((exchange, index) => emitted(index + 1, { exchange, position: null }));
  const delivery = delivered(1, { exchange: 7, first: 1, last: 2 });
  expect(messagesOf(delivery, bySeq(entries)).map(({ seq }) => seq)).toEqual([1, 3]);
});

test("only an answer has a request, which is its cause", () => {
  const entries = [
    entry(1, 0, "http.request"),
    entry(2, 0, "message.received", { cause: 1, rpc: "request", method: "ping", id: 1, message: {} }),
    emitted(3, { cause: 2, rpc: "response", method: null, id: 1 }),
    emitted(4, { cause: 2 }),
    entry(5, 0, "message.received", { cause: 1, rpc: "response", method: null, id: 9, message: {} }),
  ];
  expect(entries.map((each) => requestOf(each, bySeq(entries))?.seq)).toEqual([undefined, undefined, 2, undefined, undefined]);
  expect(entries.map((each) => methodOf(each, bySeq(entries)))).toEqual([null, "ping", "ping", "x", null]);
});

test("a connection is a pipe where it carries all messages both ways", () => {
  const pipes = ["w5", "i1", "r17", "tcp4", "h3", null].map((connection) => pipeOf(entry(1, 0, "stream.opened", { connection })));
  expect(pipes).toEqual(["w5", "i1", "r17", null, null, null]);
});

test("times count from the start of the call, by the monotonic clock", () => {
  const [before, start] = [entry(1, -1.5, "http.request"), entry(2, 0, "call.started", { at: 0 })];
  expect(originOf([before, start])).toBe(start);
  expect(originOf([before])).toBe(before);
  expect(offsetOf(before, start)).toBe(-1.5);
});
