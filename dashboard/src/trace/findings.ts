import type { JudgeReport, JudgedRule, JudgedSubject } from "~/protocol/schema";

export type Verdict = JudgedRule["verdict"];

/** From the worst on, with the word by which each is counted, the sign before it, and how it looks: what was not observed is never green. */
export const VERDICTS: readonly (readonly [Verdict, Looks])[] = [
  ["FAIL", { word: "failed", sign: "✗", tone: "bad" }],
  ["WARN", { word: "warned", sign: "!", tone: "warn" }],
  ["INCONCLUSIVE", { word: "inconclusive", sign: "?", tone: "info" }],
  ["PASS", { word: "passed", sign: "✓", tone: "good" }],
  ["NOT_OBSERVED", { word: "not observed", sign: "·", tone: "neutral" }],
];

export interface Looks {
  word: string;
  sign: string;
  tone: "bad" | "warn" | "info" | "good" | "neutral";
}

const LOOKS = new Map(VERDICTS);
const UNKNOWN: Looks = { word: "not observed", sign: "·", tone: "neutral" };

export function looksOf(verdict: Verdict): Looks {
  return LOOKS.get(verdict) ?? UNKNOWN;
}

/** `5 failed, 2 warned, 27 passed, 68 not observed`: only what there is, but what was not observed always. */
export function headlineOf({ summary }: Pick<JudgedSubject, "summary">): string {
  return VERDICTS.map(([verdict, { word }]) => ({ verdict, word, count: summary[verdict] ?? 0 }))
    .filter(({ verdict, count }) => count > 0 || verdict === "NOT_OBSERVED")
    .map(({ word, count }) => `${count} ${word}`)
    .join(", ");
}

/** A rule that a client broke, where one thing is shown that it rests on. */
export interface Finding {
  client: string;
  rule: JudgedRule;
}

/** Whether a rule was broken: what is inconclusive, passed or not observed is no finding. */
export function isFinding({ verdict }: Pick<JudgedRule, "verdict">): boolean {
  return verdict === "FAIL" || verdict === "WARN";
}

/** All findings of a report. */
export function findingsOf({ subjects }: Pick<JudgeReport, "subjects">): readonly Finding[] {
  return subjects.flatMap((subject) => subject.verdicts.filter(isFinding).map((rule) => ({ client: subject.label, rule })));
}

/** What is wrong where a rule was broken; the rule itself of a report whose catalogue has no words for that. */
export function faultOf({ fault, title }: Pick<JudgedRule, "fault" | "title">): string {
  return fault || title;
}

/** The findings by the numbers of the entries that break the rules. Entries that only show a breach, such as the first request with an id that was used twice, have no mark. */
export function byEntry(findings: readonly Finding[]): ReadonlyMap<number, readonly Finding[]> {
  const found = new Map<number, Finding[]>();
  for (const finding of findings) {
    for (const seq of finding.rule.breaches) found.set(seq, [...(found.get(seq) ?? []), finding]);
  }
  return found;
}

/** What makes a finding another one: a client, a rule and how bad it is. How often it came does not. */
export function keyOf({ client, rule }: Finding): string {
  return `${client} ${rule.rule} ${rule.verdict}`;
}

/** The page of a client, at one of its rules where one is given. `client` is a name that the judge has, or the label of a session. */
export function clientHref(client: string, rule?: string): string {
  return `/clients/${encodeURIComponent(client)}${rule === undefined ? "" : `#${rule}`}`;
}
