import { useId } from "react";
import styles from "./field.module.css";
import { useDraft } from "./use-draft";

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
  const [text, set] = useDraft(value);
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
