import { expect, test } from "vitest";
import { entry, progressEntry } from "~/testing/rows";
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

test("times count from the start of the call, by the monotonic clock", () => {
  const [before, start] = [entry(1, -1.5, "http.request"), entry(2, 0, "call.started", { at: 0 })];
  expect(originOf([before, start])).toBe(start);
  expect(originOf([before])).toBe(before);
  expect(offsetOf(before, start)).toBe(-1.5);
});
