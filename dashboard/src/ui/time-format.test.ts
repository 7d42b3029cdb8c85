import { expect, test } from "vitest";
import { formatAgo, formatDuration, formatMoment } from "./time-format";

test.each([
  [0, "0 ms"],
  [0.44, "0.4 ms"],
  [9.96, "10 ms"],
  [87.4, "87 ms"],
  [999.4, "999 ms"],
  [999.6, "1.00 s"],
  [1530, "1.53 s"],
  [59_994, "59.99 s"],
  [59_999, "1 min 00 s"],
  [247_000, "4 min 07 s"],
  [3_600_000, "1 h 00 min"],
  [7_500_000, "2 h 05 min"],
])("%d ms is %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  [-5, "now"],
  [1, "now"],
  [12, "12 s ago"],
  [185, "3 min ago"],
  [7200, "2 h ago"],
  [200_000, "2 d ago"],
])("%d s before is %s", (seconds, text) => {
  expect(formatAgo(1000 - seconds, 1000)).toBe(text);
});

const at = (...parts: [number, number, number, number]) => new Date(...parts).getTime() / 1000;

test("a moment of another day has its date, and of another year that too", () => {
  const now = at(2026, 10, 22, 15);
  expect(formatMoment(at(2026, 10, 22, 3), now)).toBe("03:00:00.000");
  expect(formatMoment(at(2026, 10, 21, 15), now)).toBe("21 Nov 15:00:00");
  expect(formatMoment(at(2025, 11, 31, 23), now)).toBe("31 Dec 2025 23:00:00");
});
