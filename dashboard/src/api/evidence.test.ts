import { expect, test } from "vitest";
import { entry, progressEntry } from "~/testing/rows";
import type { Entry } from "./schema";
import { describe, offsetOf, originOf, progressOf } from "./evidence";

test("progress is read wherever it is told, and an unsent report says why", () => {
  expect(progressOf(progressEntry(1, 0, 3, null))).toEqual({ progress: 3, total: null, message: null });
  const dropped = progressEntry(1, 0, 3, 10, { kind: "message.dropped", why: "no stream is open" });
  expect(describe(dropped)).toBe("progress 3/10, not sent: no stream is open");
  expect(describe(entry(1, 0, "call.progressed", { progress: 1, total: null, message: "one" }))).toBe('progress 1 "one"');
  expect(progressOf(entry(1, 0, "message.received", { rpc: "notification", method: "notifications/progress", message: {} }))).toBeNull();
});

test("ids keep their type", () => {
  const request = { rpc: "request", method: "tools/call", message: {} };
  expect(describe(entry(1, 0, "message.received", { ...request, id: 0 }))).toBe("tools/call, id 0");
  expect(describe(entry(1, 0, "message.received", { ...request, id: "0" }))).toBe('tools/call, id "0"');
});

test("a cancellation says who, how long it took, how far it got, and what was sent afterwards", () => {
  const settled = { outcome: "cancelled", cancelled_by: "notification", scope_exit_ms: 2.067, steps_done: 4, steps_total: 10, sent_after_cancel: 0 };
  expect(describe(entry(1, 0, "call.settled", settled))).toBe(
    "cancelled 2.07 ms after, by notification, 4/10 steps, 0 messages after cancellation",
  );
  expect(describe(entry(1, 0, "call.cancelled", { by: "disconnect", reason: null, effect: false }))).toBe(
    "by disconnect, without effect: it was over",
  );
});

const told = (kind: Entry["kind"], more: object) => describe(entry(1, 0, kind, more));

test("connections and streams that outlive them are told in words", () => {
  expect(told("connection.opened", { connection: "w5", transport: "websocket", exchange: 5, client: "[::1]:9" })).toBe("w5, websocket from [::1]:9");
  expect(told("connection.closed", { connection: "w5", code: 1006, by: "client", messages: 3 })).toBe("w5, by client, code 1006, after 3 messages");
  expect(told("connection.closed", { connection: "i1", code: null, by: "client", messages: 1 })).toBe("i1, by client, after 1 message");
  expect(told("stream.resumed", { stream: "p1", exchange: 9, after: 4, waiting: 2 })).toBe("p1, after message 4, 2 messages waiting");
  expect(told("stream.lost", { stream: "p1", why: "server_full", messages: 1 })).toBe("p1, server full, 1 message never sent");
});

test("times count from the start of the call, by the monotonic clock", () => {
  const [before, start] = [entry(1, -1.5, "http.request"), entry(2, 0, "call.started", { at: 0 })];
  expect(originOf([before, start])).toBe(start);
  expect(originOf([before])).toBe(before);
  expect(offsetOf(before, start)).toBe(-1.5);
});
