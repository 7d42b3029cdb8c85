import { expect, test } from "vitest";
import { has, only, quoted, toggled, withOnly } from "./filter";

test("a value is put into a line and taken out of it, and other words stay as they are", () => {
  expect(toggled("", "tool", "progress")).toBe("tool:progress");
  expect(toggled('client:m1 -kind:dispatch "step 3"', "tool", "slow one")).toBe('client:m1 -kind:dispatch "step 3" tool:"slow one"');
  expect(toggled('tool:progress,"slow one" x', "tool", "Progress")).toBe('tool:"slow one" x');
  expect(toggled("tool:a tool:b", "tool", "a")).toBe("tool:b");
  expect(toggled("-tool:a", "tool", "a")).toBe("-tool:a tool:a");
});

test("a line has what it asks for, and not what it leaves out", () => {
  expect([has("PROBLEM:Mistake", "problem", "mistake"), has("-problem:any", "problem", "any"), has('"problem:any"', "problem", "any")]).toEqual([true, false, false]);
});

test("only one value of a key is the one", () => {
  expect(["client:s1 tool:x", "client:s1,m1", "client:s1 client:m1", "-client:s1", 'client:"a b"', "s1"].map((line) => only(line, "client"))).toEqual(["s1", null, null, null, "a b", null]);
  expect(withOnly('client:s1 "a b" client:m1', "client", "s2")).toBe('"a b" client:s2');
});

test.each([
  ["plain", "plain"],
  ["", '""'],
  ["a b", '"a b"'],
  ["a,b", '"a,b"'],
  ['say "x" \\', String.raw`"say \"x\" \\"`],
  ["-x", '"-x"'],
  ["http://x", '"http://x"'],
])("the value %s stands in a line as %s, and is read back", (value, text) => {
  expect(quoted(value)).toBe(text);
  expect(only(`call:${text} other`, "call")).toBe(value === "" ? "" : value);
});
