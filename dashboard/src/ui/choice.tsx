import { useId } from "react";
import styles from "./field.module.css";

export interface Option {
  value: string;
  label: string;
}

interface ChoiceProps {
  label: string;
  options: readonly Option[];
  value: string;
  onChange: (value: string) => void;
}

/** One of a few, all in view; arrow keys move. */
export function Segmented({ label, options, value, onChange }: ChoiceProps) {
  const name = useId();
  return (
    <span role="radiogroup" aria-label={label} className={styles["segments"]}>
      {options.map((option) => (
        <label key={option.value} className={styles["segment"]}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </span>
  );
}

/** One of many. A value that is no option (an old link) is shown as it is. */
export function Select({ label, options, value, onChange }: ChoiceProps) {
  const known = options.some((option) => option.value === value);
  return (
    <label className={styles["field"]}>
      <span className={styles["label"]}>{label}</span>
      <select className={styles["input"]} value={value} onChange={(event) => onChange(event.target.value)}>
        {!known && <option value={value}>{value}</option>}
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}
