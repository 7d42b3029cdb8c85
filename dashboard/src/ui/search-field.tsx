import styles from "./field.module.css";
import { useDraft } from "./use-draft";

interface SearchFieldProps {
  label: string;
  value: string;
  /** Called when typing rests for 150 ms, and at once when the field is cleared or Enter is pressed. */
  onChange: (value: string) => void;
  placeholder?: string;
}

/** A search field; the key `/` goes to the first one of the page. Escape clears it. */
export function SearchField({ label, value, onChange, placeholder = "Search  /" }: SearchFieldProps) {
  const [text, set] = useDraft(value, onChange);
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
