import { useEffect, useEffectEvent, useId, useState } from "react";
import styles from "./fields.module.css";

const RESTED_MS = 150;

/** The class of what text is typed into. */
export const INPUT = styles["input"];

interface Draft {
  /** What stands in the field. */
  text: string;
  set: (text: string) => void;
  /** The text at which typing rested, or that `pass` set. */
  passed: string;
  pass: (text: string) => void;
}

/**
 * What is typed into a field. A `value` that comes from outside (the URL, a reset) replaces it; one that this field passed on does not,
 * as more may have been typed since.
 *
 * `onRest` is called when typing has rested for 150 ms, unless the text is the value already.
 */
export function useDraft(value: string, onRest?: (text: string) => void): Draft {
  const [typed, setTyped] = useState({ text: value, from: value, passed: value });
  if (typed.from !== value) setTyped(value === typed.passed ? { ...typed, from: value } : { text: value, from: value, passed: value });
  const rested = useEffectEvent(() => {
    setTyped((now) => ({ ...now, passed: typed.text }));
    onRest?.(typed.text);
  });
  useEffect(() => {
    if (typed.text === value) return undefined;
    const timer = setTimeout(rested, RESTED_MS);
    return () => clearTimeout(timer);
  }, [typed.text, value]);
  return {
    text: typed.text,
    set: (text) => setTyped((now) => ({ ...now, text })),
    passed: typed.passed,
    pass: (text) => setTyped((now) => ({ ...now, text, passed: text })),
  };
}

interface TextFieldProps {
  label: string;
  value: string;
  /** Called with Enter, and when the field is left after a change. */
  onChange: (value: string) => void;
  type?: "text" | "datetime-local";
  placeholder?: string;
  /** As wide as there is room, for an address. */
  wide?: boolean;
  /** Offered while typing. */
  suggestions?: readonly string[];
  /** What is wrong with the value. */
  error?: string | null | undefined;
}

/** One line of text. */
export function TextField({ label, value, onChange, type = "text", placeholder, wide = false, suggestions, error }: TextFieldProps) {
  const id = useId();
  const { text, set } = useDraft(value);
  const commit = () => {
    if (text !== value) onChange(text);
  };
  return (
    <span className={styles["with-error"]}>
      <label className={styles["field"]}>
        <span className={styles["label"]}>{label}</span>
        <input
          type={type}
          className={`${styles["input"]} ${styles[wide ? "wide" : "text"]}`}
          placeholder={placeholder}
          step={type === "text" ? undefined : 1}
          list={suggestions && `${id}-suggestions`}
          aria-invalid={error != null}
          aria-describedby={error == null ? undefined : `${id}-error`}
          value={text}
          onChange={(event) => set(event.target.value)}
          onBlur={commit}
          onKeyDown={(event) => {
            if (event.key === "Enter") commit();
          }}
        />
      </label>
      {suggestions && (
        <datalist id={`${id}-suggestions`}>
          {suggestions.map((each) => (
            <option key={each} value={each} aria-label={each} />
          ))}
        </datalist>
      )}
      <FieldError id={`${id}-error`} error={error} />
    </span>
  );
}

/** What is wrong with a field, under it; announced when it comes. */
export function FieldError({ id, error }: { id?: string; error: string | null | undefined }) {
  return (
    <span id={id} role="alert" className={styles["error"]}>
      {error}
    </span>
  );
}

interface SearchFieldProps {
  label: string;
  value: string;
  /** Called when typing rests for 150 ms, and at once when the field is cleared or Enter is pressed. */
  onChange: (value: string) => void;
  placeholder?: string;
}

/** A search field; the key `/` goes to the first one of the page. Escape clears it. */
export function SearchField({ label, value, onChange, placeholder = "Search  /" }: SearchFieldProps) {
  const { text, set } = useDraft(value, onChange);
  const now = (typed: string) => {
    set(typed);
    onChange(typed);
  };
  return (
    <input
      type="search"
      className={`${styles["input"]} ${styles["search"]}`}
      aria-label={label}
      placeholder={placeholder}
      data-search
      value={text}
      onChange={(event) => (event.target.value === "" ? now("") : set(event.target.value))}
      onKeyDown={(event) => {
        if (event.key === "Enter") now(text);
        if (event.key === "Escape") {
          if (text !== "") event.stopPropagation();
          now("");
        }
      }}
    />
  );
}

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
