import type { JudgedRule, JudgedSubject, RuleInfo, RuleSentence } from "~/protocol/schema";
import { type Verdict, VERDICTS } from "~/trace/findings";
import { counted } from "~/words/counted";

/** The names and versions that the client gave itself. */
export function whoIs({ names }: Pick<JudgedSubject, "names">): string {
  return names.map(({ name, version }) => `${name} ${version}`.trim()).join(", ");
}

/** What it spoke and over what, and how much. */
export function placeOf({ revisions, transports, requests, sessions }: Pick<JudgedSubject, "revisions" | "transports" | "requests" | "sessions">): string {
  const spoken = [revisions.join(", "), transports.length > 0 && `over ${transports.join(", ")}`].filter((part) => part !== "" && part !== false).join(" ");
  const counts = [requests > 0 && counted(requests, "request"), sessions > 0 && counted(sessions, "session")].filter((part) => part !== false).join(", ");
  return [spoken, counts].filter((part) => part !== "").join("; ");
}

/** `1 of 6`: how many of the opportunities had the verdict of the rule. */
export function shareOf({ verdict, counts, count }: Pick<JudgedRule, "verdict" | "counts" | "count">): string {
  return `${counts[verdict] ?? 0} of ${count}`;
}

/** The sentences that a rule rests on: those that demand it, and of these the ones of the revisions spoken. */
export function sentencesOf({ spec }: Pick<RuleInfo, "spec">, revisions: readonly string[]): readonly RuleSentence[] {
  const demanding = spec.filter(({ role }) => role === "demands");
  const all = demanding.length > 0 ? demanding : spec;
  const spoken = all.filter(({ doc }) => revisions.some((revision) => doc.startsWith(`${revision}/`)));
  return spoken.length > 0 ? spoken : all;
}

/** What stands before the dot of a rule's id: the rules about one feature. */
export function groupOf(rule: string): string {
  return rule.slice(0, rule.indexOf("."));
}

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
