import type { JudgeReport, JudgedSubject } from "~/protocol/schema";
import { faultOf, looksOf } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import { Time } from "~/ui/time";
import { counted } from "~/words/counted";
import { type Client, titleOf } from "./clients";
import { Dated } from "./dated";
import { type Figure, Figures, Shares } from "./figures";
import styles from "./report.module.css";
import { placeOf } from "./rule-words";
import { conclusionOn, countsOf, moodOf } from "./sentences";

interface HeadlineProps {
  client: Client;
  subject: JudgedSubject;
  /** Left out until all of it has come. */
  report?: JudgeReport;
  fresh?: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

/** The verdict in one sentence, and what it rests on in numbers. */
export function Headline({ client, subject, report, fresh = NOTHING }: HeadlineProps) {
  const { title, aside } = titleOf(client);
  const { failed, warned, unclear, passed, exercised, all } = countsOf(subject);
  const figures: readonly Figure[] = [
    { name: "broken", value: failed, mood: "bad" },
    { name: warned === 1 ? "warning" : "warnings", value: warned, mood: "warn" },
    { name: "inconclusive", value: unclear },
    { name: "passed", value: passed, mood: "good" },
  ];
  return (
    <section className={`${styles["headline"]} ${styles[moodOf(subject)]}`} aria-label="Conclusion">
      <p className={styles["answer"]}>
        <Dated text={`${conclusionOn(title, subject)}.`} />
      </p>
      <p className={styles["quiet"]}>
        {[aside, placeOf(subject)].filter((part) => part !== "").join("; ")}
        {client.lastAt > 0 && (
          <>
            ; last message <Time at={client.lastAt} look="ago" />
          </>
        )}
      </p>
      <Figures label="Rules" figures={[...figures, { name: "not exercised", value: all - exercised }]} />
      <Shares label={`${exercised} of ${counted(all, "rule")} exercised`} figures={figures} of={all} />
      <JustDecided subject={subject} fresh={fresh} />
      {report !== undefined && <Notices report={report} subject={subject} />}
    </section>
  );
}

// more are in the lists below, each with its mark
const NAMED = 4;

/** What was decided a moment ago, for the eye and for those who hear the page. */
function JustDecided({ subject, fresh }: Required<Pick<HeadlineProps, "subject" | "fresh">>) {
  const rules = subject.verdicts.filter(({ rule }) => fresh.has(rule));
  return (
    <p className={styles["ticker"]} role="status" aria-label="Decided just now">
      {rules.slice(0, NAMED).map((rule) => {
        const { sign, word, tone } = looksOf(rule.verdict);
        return (
          <Badge key={rule.rule} tone={tone}>
            {sign} {tone === "bad" || tone === "warn" ? faultOf(rule) : `${rule.title}: ${word}`}
          </Badge>
        );
      })}
      {rules.length > NAMED && <span>and {rules.length - NAMED} more</span>}
    </p>
  );
}

/** What weakens the verdicts. */
function Notices({ report, subject }: { report: JudgeReport; subject: JudgedSubject }) {
  const gaps = report.logs.reduce((sum, log) => sum + log.gaps.length, 0);
  const broken = Object.entries(report.broken);
  const notices = [
    subject.several !== null && `More than one client may be judged here: ${subject.several}.`,
    gaps > 0 && `Entries are missing in ${counted(gaps, "place")} of the log. What they could have decided is inconclusive.`,
    !subject.whole && gaps === 0 && "A part of this client's traffic is not in the log. What it could have decided is inconclusive.",
    ...broken.map(([rule, defect]) => `The code of ${rule} has a defect, so it has no verdict: ${defect}.`),
  ];
  return notices.map((notice) => typeof notice === "string" && <p key={notice} className={styles["notice"]}>{notice}</p>);
}
