import { expect, test } from "vitest";
import { callRow } from "~/testing/rows";
import { isCut, isDivider, merged, oneLine, withDividers } from "./calls";

const ids = (lines: readonly { id: string }[]) => lines.map(({ id }) => id);
const call = (id: string, started_at: number, more: object = {}) => callRow({ call: id, started_at, seq: started_at, ...more });

test("pages and the feed are one list, newest first, in which what is newer counts", () => {
  const pages = [[call("c2", 2, { outcome: null }), call("c1", 1)], [call("c3", 3), call("c2", 2)]];
  const feed = [call("c4", 4), call("c3", 3, { outcome: "tool_error" })];
  const all = merged(pages, feed, true);
  expect(ids(all)).toEqual(["run.c4", "run.c3", "run.c2", "run.c1"]);
  expect(all.map(({ outcome }) => outcome)).toEqual(["completed", "tool_error", "completed", "completed"]);
  expect(ids(merged(pages, feed, false))).toEqual(["run.c3", "run.c2", "run.c1"]);
});

test("a line divides the calls of each run from those of the one after it", () => {
  const calls = [call("c2", 9), { ...call("c9", 5), id: "old.c9", run: "old" }, { ...call("c8", 4), id: "old.c8", run: "old" }, { ...call("c1", 1), id: "older.c1", run: "older" }];
  const lines = withDividers(calls, "run", 8);
  expect(ids(lines)).toEqual(["run.c2", "before old.c9", "old.c9", "old.c8", "before older.c1", "older.c1"]);
  expect(lines.filter(isDivider).map(({ divides }) => divides)).toEqual([expect.stringMatching(/^Before the restart at 1 Jan 1970 /), "Before another restart: run older"]);
  expect(ids(withDividers(calls.slice(1, 2), "run", 8))).toEqual(["before old.c9", "old.c9"]);
  expect(ids(withDividers(calls, "", 0))).toEqual(ids(calls));
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
