import { DIRECTIONS, KEYS, KIND_HEADS, type Key, OUTCOMES, PROBLEMS, quoted } from "~/protocol/filter";

/** What the page knows that a word may ask for. */
export type Known = Partial<Record<Key, readonly Suggestion[]>>;

export interface Suggestion {
  value: string;
  /** What it stands for, beside it. */
  note?: string;
}

export interface Completion {
  /** What of the line it replaces, and with what. */
  from: number;
  to: number;
  insert: string;
  label: string;
  note: string;
}

const PROBLEM_NOTES: Readonly<Record<(typeof PROBLEMS)[number], string>> = {
  mistake: "what the client did wrong",
  asked: "an error that a tool gave, asked for or not",
  lost: "what reached nobody",
  limit: "a limit or a failure of the server",
  other: "of tool hosts, and what clients answer",
  any: "any of these",
};

const CHOICES: Known = {
  outcome: OUTCOMES.map((value) => ({ value })),
  direction: DIRECTIONS.map((value) => ({ value })),
  kind: KIND_HEADS.map((value) => ({ value })),
  status: [{ value: ">=400", note: "refused" }, { value: "200" }, { value: "202", note: "accepted" }],
  problem: PROBLEMS.map((value) => ({ value, note: PROBLEM_NOTES[value] })),
};

const MOST = 12;

/** What the word at the caret may become: a key, or one of its values. */
export function complete(line: string, caret: number, known: Known): readonly Completion[] {
  const from = Math.max(...[" ", "\t"].map((space) => line.lastIndexOf(space, caret - 1))) + 1;
  const rest = /^[^\s,]*/.exec(line.slice(caret))?.[0] ?? "";
  const typed = line.slice(from, caret);
  if (typed.includes('"')) return [];
  const [, sign = "", key, values = ""] = /^(-?)([A-Za-z]+):(.*)$/.exec(typed) ?? [];
  if (key === undefined) return keys(typed, from, caret + rest.length);
  const begun = values.slice(values.lastIndexOf(",") + 1).toLowerCase();
  const at = caret - begun.length;
  const name = key.toLowerCase();
  // `constructor:` is no key, though every object has one.
  if (!Object.hasOwn(KEYS, name)) return [];
  const choices = known[name as Key] ?? CHOICES[name as Key] ?? [];
  return choices
    .filter(({ value, note }) => value.toLowerCase().includes(begun) || note?.toLowerCase().includes(begun) === true)
    .slice(0, MOST)
    .map(({ value, note = "" }) => ({ from: at, to: caret + rest.length, insert: `${quoted(value)} `, label: `${sign}${key}:${value}`, note }));
}

function keys(typed: string, from: number, to: number): readonly Completion[] {
  const sign = typed.startsWith("-") ? "-" : "";
  const begun = typed.slice(sign.length).toLowerCase();
  return Object.entries(KEYS)
    .filter(([key]) => key !== "text" && key.startsWith(begun))
    .map(([key, note]) => ({ from, to, insert: `${sign}${key}:`, label: `${sign}${key}:`, note }));
}
