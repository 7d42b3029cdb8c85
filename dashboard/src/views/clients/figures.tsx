import styles from "./figures.module.css";
import type { Mood } from "./sentences";

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
