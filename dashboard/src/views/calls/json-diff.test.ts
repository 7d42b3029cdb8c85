import { expect, test } from "vitest";
import { equal, jsonDiff } from "./json-diff";

const marks = (a: unknown, b: unknown) => jsonDiff(a, b).map(({ path, mark }) => [path, mark]);

test("what differs is found where it is", () => {
  expect(marks({ same: [1], list: [1, 2], gone: 1, deep: { x: 0 } }, { same: [1], list: [1, "2", 3], deep: { x: 1 }, added: null })).toEqual([
    ["same", "same"],
    ["list.0", "same"],
    ["list.1", "differs"],
    ["list.2", "only B"],
    ["gone", "only A"],
    ["deep.x", "differs"],
    ["added", "only B"],
  ]);
});

test("a value and its absence are not the same, nor null, nor another type", () => {
  expect(marks({ a: null }, {})).toEqual([["a", "only A"]]);
  expect(marks(5, "5")).toEqual([["", "differs"]]);
  expect(marks([], {})).toEqual([["", "differs"]]);
  expect(marks({ toString: 1 }, {})).toEqual([["toString", "only A"]]);
});

test("the order of members is no difference, that of an array is", () => {
  expect(equal({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
  expect(equal([1, 2], [2, 1])).toBe(false);
});

const many = (value: number) => Array.from({ length: 5000 }, (_, at) => ({ x: { y: at + value } }));

test("of very many differences the later ones are compared as a whole", () => {
  const lines = jsonDiff(many(0), many(1));
  expect([lines.length, lines[0]?.path, lines.at(-1)?.path]).toEqual([5000, "0.x.y", "4999"]);
});
