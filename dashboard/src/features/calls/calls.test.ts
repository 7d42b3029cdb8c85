import { expect, test } from "vitest";
import { callRow } from "~/testing/rows";
import { RECENT, choose, isCut, oneLine, recentCalls } from "./calls";

test("running calls stand above, then the newest 50 that have ended", () => {
  const ended = Array.from({ length: 60 }, (_, at) => callRow({ call: `c${at}`, seq: at }));
  const running = [callRow({ call: "r1", seq: 5, outcome: null }), callRow({ call: "r2", seq: 7, outcome: null })];
  const shown = recentCalls([...running, ...ended]).map((call) => call.call);
  expect(shown.slice(0, 4)).toEqual(["r2", "r1", "c59", "c58"]);
  expect([shown.length, shown.at(-1)]).toEqual([RECENT + 2, "c10"]);
});

test("two calls are chosen; a third takes the place of the older choice", () => {
  expect(choose([], "a")).toEqual(["a"]);
  expect(choose(["a", "b"], "c")).toEqual(["b", "c"]);
  expect(choose(["a", "b"], "a")).toEqual(["b"]);
});

test("only what the server cut is taken for cut", () => {
  expect(isCut({ cut: '{"a', bytes: 9000 })).toBe(true);
  expect(isCut({ cut: "all of it", bytes: 3 })).toBe(false);
  expect(isCut({ cut: "x", bytes: 9, more: 1 })).toBe(false);
  expect(isCut(null)).toBe(false);
});

test("a line says when it is not all", () => {
  expect(oneLine({ a: 1 })).toBe('{"a":1}');
  expect(oneLine({ cut: '{"a', bytes: 9000 })).toBe('{"a…');
  expect(oneLine("x".repeat(1000))).toHaveLength(401);
});
