import type { JudgedRule, JudgedSubject, RuleInfo } from "~/protocol/schema";
import { VERDICTS, type Verdict } from "~/trace/findings";
import { groupOf } from "./rule-words";

export const REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const;

/** The rules of a group at one revision. `state` is the worst verdict, or why there is none. */
export interface Cell {
  state: Exclude<Verdict, "NOT_OBSERVED"> | "not tried" | "absent";
  /** How many rules were observed, of how many the revision has. */
  observed: number;
  all: number;
}

export interface Group {
  name: string;
  cells: readonly Cell[];
}

/** The groups of rules, each with a cell for each revision. */
export function groupsOf(subject: Pick<JudgedSubject, "verdicts" | "revisions">, rules: ReadonlyMap<string, RuleInfo>): readonly Group[] {
  const verdicts = new Map(subject.verdicts.map((rule) => [rule.rule, rule]));
  const names = [...new Set([...rules.keys()].map(groupOf))].toSorted();
  return names.map((name) => {
    const members = [...rules.values()].filter(({ rule }) => groupOf(rule) === name);
    return { name, cells: REVISIONS.map((revision) => cellOf(members, revision, verdicts)) };
  });
}

function cellOf(members: readonly RuleInfo[], revision: string, verdicts: ReadonlyMap<string, JudgedRule>): Cell {
  const there = members.filter(({ revisions }) => revisions.includes(revision));
  const found = there.map(({ rule }) => verdicts.get(rule)?.at[revision]).filter((verdict) => verdict !== undefined && verdict !== "NOT_OBSERVED");
  const worst = VERDICTS.find(([verdict]) => found.includes(verdict))?.[0];
  const state = there.length === 0 ? "absent" : worst === undefined || worst === "NOT_OBSERVED" ? "not tried" : worst;
  return { state, observed: found.length, all: there.length };
}
