import type { JudgedSubject } from "~/protocol/schema";
import { headlineOf } from "~/trace/findings";

export type Mood = "bad" | "warn" | "good" | "neutral";

/** What the verdicts come to, in words that a name can stand before: `breaks 3 MUST rules of 2025-11-25; 25 of 96 rules exercised`. */
export function conclusionOf(subject: Pick<JudgedSubject, "conclusion" | "summary">): string {
  // a report that was saved by an earlier version has none
  return subject.conclusion || headlineOf(subject);
}

/** The same with the name of the client before it. */
export function conclusionOn(title: string, subject: Pick<JudgedSubject, "conclusion" | "summary">): string {
  const says = conclusionOf(subject);
  return says.startsWith("breaks") ? `${title} ${says}` : `${title}: ${says}`;
}

/** How bad that is. */
export function moodOf(subject: Pick<JudgedSubject, "summary">): Mood {
  const { failed, warned, exercised } = countsOf(subject);
  if (failed > 0) return "bad";
  if (warned > 0) return "warn";
  return exercised > 0 ? "good" : "neutral";
}

/** How many rules have which verdict. Each that was observed is exercised, whatever came of it. */
export function countsOf({ summary }: Pick<JudgedSubject, "summary">) {
  const of = (verdict: string) => summary[verdict] ?? 0;
  const all = Object.values(summary).reduce((sum, count) => sum + count, 0);
  return { failed: of("FAIL"), warned: of("WARN"), unclear: of("INCONCLUSIVE"), passed: of("PASS"), exercised: all - of("NOT_OBSERVED"), all };
}

/** A sentence with a large first letter. */
export const begun = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
