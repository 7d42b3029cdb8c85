import { expect, test } from "vitest";
import table from "~/testing/filter-lines.json";
import { complete } from "~/widgets/complete";
import { FilterError, has, quoted, read, toggled, written } from "./filter";

const right = table.read.filter(({ error }) => error === undefined);
const wrong = table.read.filter(({ error }) => error !== undefined);

test.each(right)("as the server reads it: $line", ({ line, words }) => expect(read(line)).toEqual(words));

test.each(wrong)("what is wrong is said as the server says it: $line", ({ line, error }) => expect(() => read(line)).toThrow(new FilterError(error)));

test("what a line says can be written and read again", () => {
  for (const { line } of right) expect(read(written(read(line)))).toEqual(read(line));
  expect([quoted("a b"), quoted('say "x"'), quoted("a,b"), quoted("-x"), quoted("http://x"), quoted("plain")]).toEqual(['"a b"', String.raw`"say \"x\""`, '"a,b"', '"-x"', '"http://x"', "plain"]);
});

test("a chip writes its words into the line, and takes them out again", () => {
  const on = toggled("client:m1 hello", "problem", ["mistake"]);
  expect([on, has(on, "problem", ["mistake"])]).toEqual(["client:m1 hello problem:mistake", true]);
  const both = toggled(on, "problem", ["lost"]);
  expect(both).toBe("client:m1 hello problem:mistake,lost");
  expect(toggled(toggled(both, "problem", ["mistake"]), "problem", ["lost"])).toBe("client:m1 hello");
  expect(has("-problem:lost", "problem", ["lost"])).toBe(false);
});

const KNOWN = { client: [{ value: "m1", note: "lab agent" }, { value: "s1", note: "desk" }], tool: [{ value: "progress" }, { value: "with space" }] };
const offered = (line: string, caret = line.length) => complete(line, caret, KNOWN).map(({ label }) => label);

test.each([
  ["to", ["tool:"]],
  ["-k", ["-kind:"]],
  ["tool:pro", ["tool:progress"]],
  ["client:lab", ["client:m1"]],
  ["client:m1,", ["client:m1", "client:s1"]],
  ["tool:x outcome:time", ["outcome:timed_out"]],
  ["nothing", []],
  ["constructor:", []],
  ['"to', []],
])("%s may become %j", (line, labels) => expect(offered(line)).toEqual(labels));

test("a completion replaces the word at the caret, and quotes what needs it", () => {
  const line = "tool:sp method:ping";
  const [option] = complete(line, 7, KNOWN);
  if (option === undefined) throw new Error("there is a completion");
  expect(line.slice(0, option.from) + option.insert + line.slice(option.to)).toBe('tool:"with space"  method:ping');
});
