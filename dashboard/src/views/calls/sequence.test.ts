import { expect, test } from "vitest";
import { entry, progressEntry } from "~/testing/rows";
import { align, stepsOf } from "./sequence";

const asked = entry(1, -2, "message.received", { rpc: "request", method: "tools/call", id: 5, message: {} });
const started = entry(2, 0, "call.started", { tool: "progress", request_id: 5 });
const response = entry(9, 50, "message.emitted", { cause: 1, rpc: "response", method: null, id: 5, message: {} });
const cancelled = entry(8, 30, "message.received", { rpc: "notification", method: "notifications/cancelled", id: null, message: {} });

test("messages count from the start of the call", () => {
  expect(stepsOf([asked, started, progressEntry(3, 10, 1)]).map((step) => [step.direction, step.offset, step.text])).toEqual([
    ["in", -2, "tools/call request"],
    ["out", 10, "notifications/progress · 1/10"],
  ]);
});

test("alike messages are paired, the others stand alone in their place", () => {
  const a = stepsOf([asked, started, progressEntry(3, 10, 1), progressEntry(4, 20, 2), cancelled]);
  const b = stepsOf([asked, started, progressEntry(3, 11, 1), progressEntry(4, 20, 2), progressEntry(5, 30, 3), response]);
  expect(align(a, b).map((pair) => [pair.a?.text ?? null, pair.b?.text ?? null])).toEqual([
    ["tools/call request", "tools/call request"],
    ["notifications/progress · 1/10", "notifications/progress · 1/10"],
    ["notifications/progress · 2/10", "notifications/progress · 2/10"],
    ["notifications/cancelled", null],
    [null, "notifications/progress · 3/10"],
    [null, "tools/call response"],
  ]);
});

test("a message that only one call has does not shift the rest", () => {
  const a = stepsOf([asked, started, cancelled, response]);
  const b = stepsOf([asked, started, response]);
  expect(align(a, b).map((pair) => [pair.a !== null, pair.b !== null])).toEqual([
    [true, true],
    [true, false],
    [true, true],
  ]);
});
