import { expect, test } from "vitest";
import { entry, progressEntry } from "~/testing/rows";
import { offsetOf, originOf, progressOf } from "./facts";

test("progress is read wherever it is reported, and nowhere else", () => {
  expect(progressOf(progressEntry(1, 0, 3, null))).toEqual({ progress: 3, total: null, message: null });
  expect(progressOf(entry(1, 0, "message.received", { rpc: "notification", method: "notifications/progress", message: {} }))).toBeNull();
  expect(progressOf(entry(1, 0, "call.progressed", { progress: 1, total: 2, message: "one" }))).toMatchObject({ progress: 1, total: 2, message: "one" });
});

test("times count from the start of the call, by the monotonic clock", () => {
  const [before, start] = [entry(1, -1.5, "http.request"), entry(2, 0, "call.started", { at: 0 })];
  expect(originOf([before, start])).toBe(start);
  expect(originOf([before])).toBe(before);
  expect(offsetOf(before, start)).toBe(-1.5);
});
