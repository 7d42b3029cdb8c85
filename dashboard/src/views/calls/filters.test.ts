import { expect, test } from "vitest";
import { conditionOf, fieldOf, localTime, questionOf, utcTime } from "./filters";

const asked = (search: string) => questionOf(new URLSearchParams(search)).toString();

test("only filters and conditions are asked for, not the other state of the page", () => {
  expect(asked("mode=audit&tail=on&compare=a,b&tool=progress&arguments.steps=5&result.content.0.type=text&outcome=")).toBe(
    "tool=progress&arguments.steps=5&result.content.0.type=text",
  );
});

test("the order in which filters were set makes no other question", () => {
  expect(asked("outcome=cancelled&tool=x")).toBe(asked("tool=x&outcome=cancelled"));
});

test("a condition is a path, = and a value, which may hold = itself", () => {
  expect(conditionOf("arguments.steps=5")).toEqual({ name: "arguments.steps", value: "5" });
  expect(conditionOf(' result.text = "a=b"')).toEqual({ name: "result.text", value: '"a=b"' });
  expect(conditionOf("steps=5")).toHaveProperty("wrong");
  expect(conditionOf("arguments.steps")).toHaveProperty("wrong");
});

test.each([
  ["outcome must be among completed, tool_error; got 'foo'", "outcome"],
  ["from must be a time such as 2026-03-01T12:00:00Z; got 'x'", "from"],
  ["'arguments.' is no path: after arguments come names of members", "condition"],
  ["result.a stands twice; it can be given once", "condition"],
  ["there is no parameter 'tol'; known are tool, toolset", null],
  ["the cursor is of another question", null],
])("%s is about %s", (detail, field) => {
  expect(fieldOf(detail)).toBe(field);
});

test("times go from the field to the URL and back without loss", () => {
  const local = "2026-11-21T10:54:29";
  expect(localTime(utcTime(local))).toBe(local);
  expect(localTime(String(new Date(local).getTime() / 1000))).toBe(local);
  expect([localTime(""), localTime("yesterday"), utcTime("")]).toEqual(["", "", ""]);
});
