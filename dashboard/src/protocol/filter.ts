/**
 * The words of a filter line, such as `client:m1 tool:progress -kind:dispatch status:>=400 "step 3"`.
 *
 *     text  "two words"     anywhere in an entry, upper and lower case alike; in quotes, `\"` is a quote, `\\` a backslash
 *     key:value             of what the key names, one of the values, with commas between them; `*` stands for anything
 *     -word                 not that
 *
 * A key that stands several times has all its values. The server reads the same lines (src/probe/views/search/words.py);
 * tests of both read ~/testing/filter-lines.json.
 */

/** What a word may ask for, and what its values are. */
export const KEYS = {
  client: "a session, a modern client, its name or its label",
  tool: "the name of a tool",
  method: "the method of a message",
  outcome: "how a call ended",
  status: "the HTTP status: 404, >=400",
  kind: "the kind of an entry, or how it begins",
  direction: "in to the server, or out from it",
  problem: "whose doing a problem is",
  call: "a call",
  task: "a task",
  stream: "a stream",
  exchange: "a request over HTTP, or a message on a pipe",
  connection: "a connection",
  text: "anywhere in the entry",
} as const;
export type Key = keyof typeof KEYS;

export const PROBLEMS = ["mistake", "asked", "lost", "limit", "other", "any"] as const;
export const OUTCOMES = ["running", "completed", "tool_error", "protocol_error", "cancelled", "timed_out", "disconnected", "input_required"] as const;
export const DIRECTIONS = ["in", "out"] as const;
/** What kinds begin with, up to the first dot. */
export const KIND_HEADS = ["audit", "call", "client", "connection", "dispatch", "forwarding", "host", "http", "limit", "message", "request", "server", "session", "socket", "stdio", "stream", "task", "websocket"] as const;

const CHOICES: Partial<Record<Key, readonly string[]>> = { direction: DIRECTIONS, problem: PROBLEMS, outcome: OUTCOMES };
const MOST_VALUES = 50;
const STATUS = /^(<=|>=|<|>)?(\d{3})$/;

/** What one key asks for: one of the values, or none of them where it is negated. Values are in lower case. */
export interface Word {
  key: Key;
  values: readonly string[];
  negated: boolean;
}

/** A word as it stands in a line, from one place up to another. */
export interface Token {
  from: number;
  to: number;
  negated: boolean;
  key: string;
  values: readonly string[];
}

/** What of a line is not understood. */
export class FilterError extends Error {}

/** The words of a line, each key once and once more negated; each text is a word of its own. Throws `FilterError`. */
export function read(line: string): readonly Word[] {
  const found = new Map<string, { key: Key; values: string[]; negated: boolean }>();
  for (const { key, values, negated, from } of tokens(line)) {
    check(key, values);
    const place = `${key} ${negated} ${key === "text" && !negated ? from : ""}`;
    const before = found.get(place);
    if (before === undefined) found.set(place, { key, values: [...values], negated });
    else before.values.push(...values);
  }
  const words = [...found.values()];
  if (words.reduce((sum, { values }) => sum + values.length, 0) > MOST_VALUES) throw new FilterError(`a filter has at most ${MOST_VALUES} values`);
  return words.map(({ key, values, negated }) => ({ key, values: [...new Set(values.map((value) => value.toLowerCase()))], negated }));
}

/** The words as they stand. Throws `FilterError` for a quotation without an end. */
export function tokens(line: string): readonly Token[] {
  const found: Token[] = [];
  const keyed = /[A-Za-z_]+:/y;
  let at = 0;
  while (at < line.length) {
    if (isSpace(line[at])) {
      at += 1;
      continue;
    }
    const from = at;
    const negated = line[at] === "-" && at + 1 < line.length && !isSpace(line[at + 1]);
    if (negated) at += 1;
    keyed.lastIndex = at;
    const [begin] = keyed.exec(line) ?? [];
    if (begin !== undefined) at += begin.length;
    const values: string[] = [];
    for (;;) {
      const [value, end] = valueAt(line, at, begin !== undefined);
      values.push(value);
      at = end;
      if (begin === undefined || line[at] !== ",") break;
      at += 1;
    }
    found.push({ from, to: at, negated, key: begin === undefined ? "text" : begin.slice(0, -1).toLowerCase(), values });
  }
  return found;
}

const isSpace = (character: string | undefined) => character !== undefined && /\s/.test(character);

/** A value from a place on, in quotes or up to a space (or a comma), and where it ends. */
function valueAt(line: string, from: number, commas: boolean): [string, number] {
  let at = from;
  if (line[at] === '"') {
    let value = "";
    at += 1;
    while (at < line.length && line[at] !== '"') {
      if (line[at] === "\\" && (line[at + 1] === '"' || line[at + 1] === "\\")) at += 1;
      value += line[at];
      at += 1;
    }
    if (at >= line.length) throw new FilterError(`a quotation that begins with "${value} has no end`);
    return [value, at + 1];
  }
  const ends = commas ? /[\s,]/g : /\s/g;
  ends.lastIndex = at;
  const end = ends.exec(line)?.index ?? line.length;
  return [line.slice(from, end), end];
}

function check(key: string, values: readonly string[]): asserts key is Key {
  if (!Object.hasOwn(KEYS, key)) {
    throw new FilterError(`${key}: is no word of the filter; known are ${Object.keys(KEYS).join(", ")}; a text with a colon stands in quotes: "${key}:${values[0]}"`);
  }
  for (const value of values) {
    if (value === "") throw new FilterError(`${key}: has no value`);
    checkValue(key as Key, value);
  }
}

function checkValue(key: Key, value: string): void {
  const choices = CHOICES[key];
  if (choices !== undefined && !value.includes("*") && !choices.includes(value.toLowerCase())) {
    throw new FilterError(`${key}:${value} is not known; ${key} is one of ${choices.join(", ")}`);
  }
  if (key === "status" && !STATUS.test(value)) throw new FilterError(`status:${value} is no status; it would be 404, >=400 or <300`);
  const [head = ""] = value.toLowerCase().split(".", 1);
  if (key === "kind" && !value.includes("*") && !(KIND_HEADS as readonly string[]).includes(head)) {
    throw new FilterError(`kind:${value} is not known; kinds begin with ${KIND_HEADS.join(", ")}`);
  }
}

/** Whether a name, or a number as a text, is one of the values of a word; of a `kind`, also what begins with one. */
export function matcher({ key, values }: Word): (mine: string) => boolean {
  if (key === "text") return (mine) => values.some((value) => mine.includes(value));
  if (key === "status") return statusMatcher(values);
  const exact = new Set(values.filter((value) => !value.includes("*")));
  const globs = values.filter((value) => value.includes("*")).map((value) => value.split("*"));
  const heads = key === "kind" ? [...exact].map((value) => `${value}.`) : [];
  return (mine) => {
    const name = mine.toLowerCase();
    return exact.has(name) || heads.some((head) => name.startsWith(head)) || globs.some((parts) => fits(name, parts));
  };
}

/** Whether a name has these parts in their order, the first at its beginning and the last at its end. */
function fits(name: string, parts: readonly string[]): boolean {
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.endsWith(last) && name.length - last.length >= at;
}

const COMPARE: Readonly<Record<string, (mine: number, asked: number) => boolean>> = {
  "<": (mine, asked) => mine < asked,
  ">": (mine, asked) => mine > asked,
  "<=": (mine, asked) => mine <= asked,
  ">=": (mine, asked) => mine >= asked,
};

function statusMatcher(values: readonly string[]): (mine: string) => boolean {
  const asked = values.flatMap((value) => {
    const [, sign = "", number = ""] = STATUS.exec(value) ?? [];
    return number === "" ? [] : [{ compare: COMPARE[sign] ?? ((mine: number, other: number) => mine === other), number: Number(number) }];
  });
  return (mine) => asked.some(({ compare, number }) => compare(Number(mine), number));
}

/** A value as it stands in a line: in quotes where it has to. */
export function quoted(value: string): string {
  return value === "" || /[\s",]|^-|^\w+:/.test(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : value;
}

/** Whether a line asks for all of these values of a key. */
export function has(line: string, key: Key, values: readonly string[]): boolean {
  const word = readOr(line).find((each) => each.key === key && !each.negated);
  return word !== undefined && values.every((value) => word.values.includes(value.toLowerCase()));
}

/** The line with these values of a key, or without them where it has them all. */
export function toggled(line: string, key: Key, values: readonly string[]): string {
  const on = has(line, key, values);
  const words = readOr(line).flatMap((word): readonly Word[] => {
    if (word.key !== key || word.negated) return [word];
    const left = word.values.filter((value) => !values.includes(value));
    return left.length === 0 ? [] : [{ ...word, values: left }];
  });
  if (on) return written(words);
  const mine = words.find((word) => word.key === key && !word.negated);
  const others = words.filter((word) => word !== mine);
  return written([...others, { key, values: [...(mine?.values ?? []), ...values], negated: false }]);
}

/** The line that says these words. */
export function written(words: readonly Word[]): string {
  return words.map(({ key, values, negated }) => `${negated ? "-" : ""}${key === "text" && values.length === 1 ? "" : `${key}:`}${values.map(quoted).join(",")}`).join(" ");
}

// what is not understood yet asks for nothing
function readOr(line: string): readonly Word[] {
  try {
    return read(line);
  } catch (error) {
    if (error instanceof FilterError) return [];
    throw error;
  }
}
