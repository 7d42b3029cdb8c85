import type { JudgedRule, JudgedSubject, RuleInfo, RuleSentence } from "~/protocol/schema";
import { counted } from "~/words/dispatches";

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
