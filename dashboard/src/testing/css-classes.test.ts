import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const SRC = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(SRC, path), "utf8");

const SHEETS = globSync("**/*.module.css", { cwd: SRC }).toSorted();
const MODULES = globSync("**/*.{ts,tsx}", { cwd: SRC }).map((path) => ({ path, text: read(path) }));

function classesOf(sheet: string): ReadonlySet<string> {
  const rules = read(sheet).replace(/^@import.*$/m, "").replaceAll(/\/\*[^]*?\*\/|:global\(\.[^)]*\)/g, "");
  return new Set(rules.match(/\.[a-zA-Z][\w-]*/g)?.map((name) => name.slice(1)));
}

/** The classes that the modules take from a sheet by name, and whether one of them makes a name as it runs. */
function usesOf(sheet: string) {
  const uses = MODULES.flatMap(({ path, text }) => {
    const [, variable, from] = new RegExp(`import (\\w+) from "((?:\\./|~/)[^"]*)";`).exec(text.slice(text.search(/import \w+ from "[^"]*\.module\.css"/))) ?? [];
    if (variable === undefined || from === undefined || sheet !== (from.startsWith("~/") ? from.slice(2) : join(dirname(path), from))) return [];
    return [...text.matchAll(new RegExp(`\\b${variable}\\[(?:"([^"]*)"|[^\\]]+)\\]`, "g"))].map((match) => match[1] ?? null);
  });
  return { written: new Set(uses.filter((each) => each !== null)), computed: uses.includes(null) };
}

test.each(SHEETS)("%s has each class that is taken from it, and no other", (sheet) => {
  const classes = classesOf(sheet);
  const { written, computed } = usesOf(sheet);
  expect([...written].filter((name) => !classes.has(name))).toEqual([]);
  expect([...classes].filter((name) => !computed && !written.has(name))).toEqual([]);
});

test("a part uses each class that parts share", () => {
  const words = new Set(MODULES.filter(({ path }) => !path.includes(".test.")).flatMap(({ text }) => (text.match(/(?<=className=).*/g) ?? []).flatMap((line) => line.match(/[\w-]+/g) ?? [])));
  expect([...classesOf("ui/base.css")].filter((name) => !words.has(name))).toEqual([]);
});
