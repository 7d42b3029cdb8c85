import { useEffect, useEffectEvent, useState } from "react";
import styles from "./field.module.css";

interface SearchFieldProps {
  label: string;
  value: string;
  /** Called when typing rests for 150 ms, and at once when the field is cleared or Enter is pressed. */
  onChange: (value: string) => void;
  placeholder?: string;
}

/** A search field; the key `/` goes to the first one of the page. Escape clears it. */
export function SearchField({ label, value, onChange, placeholder = "Search  /" }: SearchFieldProps) {
  const [typed, setTyped] = useState({ text: value, from: value });
  // a value that comes from outside (the URL, a reset) replaces what was typed
  if (typed.from !== value) setTyped({ text: value, from: value });
  const rested = useEffectEvent(() => onChange(typed.text));
  useEffect(() => {
    if (typed.text === value) return undefined;
    const timer = setTimeout(rested, 150);
    return () => clearTimeout(timer);
  }, [typed.text, value]);
  const set = (text: string) => setTyped({ text, from: value });
  const now = (text: string) => {
    set(text);
    onChange(text);
  };
  return (
    <input
      type="search"
      className={`${styles["input"]} ${styles["search"]}`}
      aria-label={label}
      placeholder={placeholder}
      data-search
      value={typed.text}
      onChange={(event) => (event.target.value === "" ? now("") : set(event.target.value))}
      onKeyDown={(event) => {
        if (event.key === "Enter") now(typed.text);
        if (event.key === "Escape") {
          if (typed.text !== "") event.stopPropagation();
          now("");
        }
      }}
    />
  );
}
