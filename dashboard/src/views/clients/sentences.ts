import type { JudgedSubject } from "~/protocol/schema";
import { counted } from "~/words/counted";

type Judged = Pick<JudgedSubject, "summary" | "verdicts">;

export type Mood = "bad" | "warn" | "good" | "neutral";

/** What the verdicts on a client come to, in words that its name can stand before: `breaks 3 MUST rules of 2025-11-25`. */
export function sentenceOf(subject: Judged): { mood: Mood; text: string } {
  const { failed, warned, exercised } = countsOf(subject);
  if (failed > 0) return { mood: "bad", text: `breaks ${counted(failed, "MUST rule")}${ofRevisions(subject)}` };
  if (warned > 0) return { mood: "warn", text: `breaks no MUST rule, and has ${counted(warned, "warning")}` };
  if (exercised === 0) return { mood: "neutral", text: "has exercised no rule yet" };
  return { mood: "good", text: "shows no fault" };
}

/** How many rules have which verdict. Each that was observed is exercised, whatever came of it. */
export function countsOf({ summary }: Pick<JudgedSubject, "summary">) {
  const of = (verdict: string) => summary[verdict] ?? 0;
  const all = Object.values(summary).reduce((sum, count) => sum + count, 0);
  return { failed: of("FAIL"), warned: of("WARN"), unclear: of("INCONCLUSIVE"), passed: of("PASS"), exercised: all - of("NOT_OBSERVED"), all };
}

const LIST = new Intl.ListFormat("en");

/** ` of 2025-11-25 and 2026-07-28`: the revisions at which a MUST was broken. */
function ofRevisions({ verdicts }: Judged): string {
  const broken = new Set(verdicts.flatMap(({ at }) => Object.entries(at).flatMap(([revision, verdict]) => (verdict === "FAIL" ? [revision] : []))));
  return broken.size === 0 ? "" : ` of ${LIST.format([...broken].toSorted())}`;
}

/** A sentence with a large first letter. */
export const begun = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
