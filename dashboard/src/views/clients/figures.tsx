import type { JudgedSubject } from "~/protocol/schema";
import { counted } from "~/words/text";
import { countsOf, type Mood } from "./clients";
import styles from "./report.module.css";

interface Figure {
  name: string;
  value: number;
  mood?: Mood | "info";
}

interface RuleFiguresProps {
  subject: Pick<JudgedSubject, "summary">;
  /** Also what there is none of, and what was not exercised. */
  whole?: boolean;
}

/** How many rules a client broke, kept and did not exercise; the bar below them is all rules. Those exercised add up to the number in the conclusion. */
export function RuleFigures({ subject, whole = false }: RuleFiguresProps) {
  const { failed, warned, unclear, passed, exercised, all } = countsOf(subject);
  const figures: readonly Figure[] = [
    { name: "broken", value: failed, mood: "bad" },
    { name: warned === 1 ? "warning" : "warnings", value: warned, mood: "warn" },
    { name: "inconclusive", value: unclear, mood: "info" },
    { name: "passed", value: passed, mood: "good" },
  ];
  const shown = whole ? [...figures, { name: "not exercised", value: all - exercised }] : figures.filter(({ name, value }) => value > 0 || name === "passed");
  return (
    <>
      <Figures label="Rules" figures={shown} />
      <div className={`${styles["shares"]} track`} role="img" aria-label={`${exercised} of ${counted(all, "rule")} exercised`}>
        {figures.map(({ name, value, mood }) => value > 0 && <span key={name} data-tone={mood} style={{ width: `${(100 * value) / all}%` }} />)}
      </div>
    </>
  );
}

/** Numbers that are read at a glance. What there is none of has no colour. */
export function Figures({ label, figures }: { label: string; figures: readonly Figure[] }) {
  return (
    <dl className={styles["figures"]} aria-label={label}>
      {figures.map(({ name, value, mood }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className={value === 0 ? styles["none"] : undefined} data-tone={value === 0 ? undefined : mood}>{value.toLocaleString("en")}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A text in which no date is broken at the end of a line. */
export function Dated({ text }: { text: string }) {
  return text.split(/(\d{4}-\d{2}-\d{2})/).map((part, at) => {
    // the parts of a text never move
    // oxlint-disable-next-line react/no-array-index-key
    return at % 2 === 0 ? part : <span key={at} className={styles["date"]}>{part}</span>;
  });
}
