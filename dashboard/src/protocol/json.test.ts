import { expect, test, vi } from "vitest";
import { at, brief, isRounded, parseJson, scalarText, writeJson } from "./json";

const LARGE = '{"id":9007199254740993,"other":9007199254740992,"list":[-9007199254740993,1.5,7],"text":"9007199254740993"}';

/** What a browser does that calls a reviver without the source of the number. */
function withoutSource(): void {
  const parse = JSON.parse;
  vi.spyOn(JSON, "parse").mockImplementation((text, reviver) =>
    reviver === undefined ? parse(text) : parse(text, (key, value: unknown) => reviver(key, value) as unknown),
  );
}

test("integers beyond 2^53 keep all digits, and neighbours differ", () => {
  const value = parseJson(LARGE);
  expect(at(value, "id")).toBe(9007199254740993n);
  expect(at(value, "id")).not.toBe(at(value, "other"));
  expect(scalarText(9007199254740993n)).toBe("9007199254740993");
  expect(writeJson(value)).toBe(LARGE);
  expect(brief(value)).toBe(LARGE);
});

test("what a double holds stays a number, and text stays text", () => {
  expect(parseJson('[1,-0.5,9007199254740991,12345678.123456789012,"9007199254740993"]')).toEqual([
    1,
    -0.5,
    9007199254740991,
    12345678.123456789,
    "9007199254740993",
  ]);
});

test("written with an indent, as for the clipboard, the digits stay too", () => {
  expect(writeJson({ id: 9007199254740993n }, 2)).toBe('{\n  "id": 9007199254740993\n}');
  expect(writeJson({ id: 1 }, 2)).toBe('{\n  "id": 1\n}');
});

test("where the browser rounds, it says so", () => {
  withoutSource();
  const id = at(parseJson(LARGE), "id");
  expect(id).toBe(2 ** 53);
  expect(isRounded(id)).toBe(true);
  expect(scalarText(2 ** 53)).toBe("≈9007199254740992");
  expect(brief({ id })).toBe('{"id":≈9007199254740992}');
});

test("ids keep their types, and a large value is not written out", () => {
  expect([0, "0", "", -1].map((id) => scalarText(id))).toEqual(["0", '"0"', '""', "-1"]);
  const deep = { list: Array.from({ length: 100_000 }, (_, index) => ({ index, text: "x".repeat(100) })), text: "y".repeat(1e6) };
  expect(brief(deep, 100).length).toBe(101);
  expect(brief({ a: [1, "b", null, true], c: {} })).toBe('{"a":[1,"b",null,true],"c":{}}');
  expect([at({ a: [{ b: 1 }] }, "a", 0, "b"), at({}, "toString"), at(null, "a")]).toEqual([1, undefined, undefined]);
});
