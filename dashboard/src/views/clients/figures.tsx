import type { Mood } from "./clients";
import styles from "./figures.module.css";

export interface Figure {
  name: string;
  value: number;
  /** What the value is a part of. */
  of?: number;
  mood?: Mood;
}

/** How the figures share a whole, as one bar; what is left of it has no colour. */
export function Shares({ label, figures, of }: { label: string; figures: readonly Figure[]; of: number }) {
  return (
    <div className={styles["shares"]} role="img" aria-label={label}>
      {figures.map(({ name, value, mood = "neutral" }) => value > 0 && <span key={name} className={styles[mood]} style={{ width: `${(100 * value) / of}%` }} />)}
    </div>
  );
}

/** Numbers that are read at a glance. What there is none of has no colour. */
export function Figures({ label, figures }: { label: string; figures: readonly Figure[] }) {
  return (
    <dl className={styles["figures"]} aria-label={label}>
      {figures.map(({ name, value, of, mood = "neutral" }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className={value === 0 ? styles["none"] : styles[mood]}>
            {value.toLocaleString("en")}
            {of !== undefined && <small> of {of.toLocaleString("en")}</small>}
          </dd>
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
