import type { JudgeReport, JudgedSubject } from "~/protocol/schema";
import { type Looks, VERDICTS, headlineOf, looksOf } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import { UNATTRIBUTED } from "~/words/client-name";
import { counted } from "~/words/counted";
import styles from "./report.module.css";
import { placeOf, whoIs } from "./rule-words";

interface HeadlineProps {
  report: JudgeReport;
  subject: JudgedSubject;
  fresh: ReadonlySet<string>;
}

/** Who it is, and how many rules have each verdict. */
export function Headline({ report, subject, fresh }: HeadlineProps) {
  return (
    <section className={styles["headline"]} aria-label="Verdicts">
      <p>
        <strong>{subject.label === UNATTRIBUTED ? "what belongs to no known client" : whoIs(subject) || subject.label}</strong>{" "}
        <span className={styles["quiet"]}>{placeOf(subject)}</span>
      </p>
      <ul className={styles["tiles"]} aria-label={headlineOf(subject)}>
        {VERDICTS.map(([verdict, looks]) => (
          <Tile key={verdict} {...looks} count={subject.summary[verdict] ?? 0} />
        ))}
      </ul>
      <JustDecided subject={subject} fresh={fresh} />
      <Notices report={report} subject={subject} />
    </section>
  );
}

/** What there is none of has no colour. */
function Tile({ word, sign, tone, count }: Looks & { count: number }) {
  return (
    <li className={`${styles["tile"]} ${count === 0 ? "" : styles[tone]}`}>
      <b>
        <span aria-hidden="true">{sign}</span> {count}
      </b>
      {word}
    </li>
  );
}

// more are in the lists below, each with its mark
const NAMED = 4;

/** What was decided a moment ago, for the eye and for those who hear the page. */
function JustDecided({ subject, fresh }: Pick<HeadlineProps, "subject" | "fresh">) {
  const rules = subject.verdicts.filter(({ rule }) => fresh.has(rule));
  return (
    <p className={styles["ticker"]} role="status" aria-label="Decided just now">
      {rules.length === 0 && <span className={styles["quiet"]}>Verdicts appear here as the client works.</span>}
      {rules.slice(0, NAMED).map(({ rule, verdict }) => {
        const { sign, word, tone } = looksOf(verdict);
        return (
          <Badge key={rule} tone={tone}>
            {sign} {rule} {word}
          </Badge>
        );
      })}
      {rules.length > NAMED && <span>and {rules.length - NAMED} more</span>}
    </p>
  );
}

/** What weakens the verdicts. */
function Notices({ report, subject }: Pick<HeadlineProps, "report" | "subject">) {
  const gaps = report.logs.reduce((sum, log) => sum + log.gaps.length, 0);
  const broken = Object.entries(report.broken);
  const notices = [
    subject.several !== null && `More than one client may be judged here: ${subject.several}.`,
    gaps > 0 && `Entries are missing in ${counted(gaps, "place")} of the log; what they could have decided is inconclusive.`,
    !subject.whole && gaps === 0 && "Something of this client is not in the log; what it could have decided is inconclusive.",
    ...broken.map(([rule, defect]) => `The code of ${rule} has a defect, so it has no verdict: ${defect}.`),
  ];
  return notices.map((notice) => typeof notice === "string" && <p key={notice} className={styles["notice"]}>{notice}</p>);
}
