import { type KeyboardEvent, useId, useRef, useState } from "react";
import { FilterError, read } from "~/protocol/filter";
import { FieldError } from "~/ui/text-field";
import { useDraft } from "~/ui/use-draft";
import { type Completion, type Known, complete } from "./complete";
import styles from "./filter-line.module.css";

interface FilterLineProps {
  value: string;
  /** Called when typing rests for 150 ms with a line that is understood, and at once with Enter or a completion. */
  onChange: (line: string) => void;
  known: Known;
}

/** What a line does not say rightly; null for a line that is understood. */
function problemOf(line: string): string | null {
  try {
    read(line);
    return null;
  } catch (error) {
    if (error instanceof FilterError) return error.message;
    throw error;
  }
}

const next = (at: number, count: number) => (at + 1 < count ? at + 1 : 0);
const before = (at: number, count: number) => (at > 0 ? at - 1 : count - 1);

/**
 * One line of words that filter, with completion: a combobox whose list opens while typing and by the down arrow.
 *
 * `/` goes to it. Enter or Tab takes the chosen completion; Escape closes the list, and then clears the line.
 */
export function FilterLine({ value, onChange, known }: FilterLineProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, set] = useDraft(value, (rested) => {
    if (problemOf(rested) === null) onChange(rested);
  });
  const [caret, setCaret] = useState(0);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const error = problemOf(text);
  const options = open ? complete(text, caret, known) : [];
  const at = Math.min(chosen, options.length - 1);
  const now = (line: string) => {
    set(line);
    if (problemOf(line) === null) onChange(line);
  };
  const take = ({ from, to, insert }: Completion) => {
    const line = text.slice(0, from) + insert + text.slice(to);
    const end = from + insert.length;
    set(line);
    setCaret(end);
    setChosen(-1);
    // a key waits for its value
    setOpen(!insert.endsWith(" "));
    if (insert.endsWith(" ")) now(line);
    // behind the end of the change, once React has written it
    requestAnimationFrame(() => input.current?.setSelectionRange(end, end));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const option = options[at];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      setChosen(event.key === "ArrowDown" ? next(at, options.length) : before(at, options.length));
    } else if ((event.key === "Enter" || event.key === "Tab") && option !== undefined) {
      event.preventDefault();
      take(option);
    } else if (event.key === "Enter") {
      setOpen(false);
      now(text);
    } else if (event.key === "Escape" && (options.length > 0 || text !== "")) {
      event.stopPropagation();
      if (options.length > 0) setOpen(false);
      else now("");
    }
  };
  return (
    <span className={styles["filter"]}>
      <input
        ref={input}
        type="text"
        role="combobox"
        className={styles["input"]}
        aria-label="Filter"
        aria-expanded={options.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={options[at] === undefined ? undefined : `${id}-${at}`}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : `${id}-error`}
        placeholder="Filter, such as client:m1 tool:progress status:>=400   /"
        autoComplete="off"
        spellCheck={false}
        data-search
        value={text}
        onChange={(event) => {
          set(event.target.value);
          setCaret(event.target.selectionStart ?? event.target.value.length);
          setOpen(true);
          setChosen(-1);
          if (event.target.value === "") onChange("");
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? 0)}
        onFocus={() => setOpen(text === "")}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      {/* while the line is being typed, what is missing is not yet wrong */}
      <FieldError id={`${id}-error`} error={options.length > 0 ? null : error} />
      <Completions id={id} options={options} at={at} onTake={take} />
    </span>
  );
}

interface CompletionsProps {
  id: string;
  options: readonly Completion[];
  /** The one that the keyboard has chosen. */
  at: number;
  onTake: (option: Completion) => void;
}

function Completions({ id, options, at, onTake }: CompletionsProps) {
  return (
    <div id={`${id}-list`} role="listbox" aria-label="Completions" className={styles["list"]} hidden={options.length === 0}>
      {options.map((option, index) => (
        // the keyboard chooses by aria-activedescendant, and the focus stays in the field
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus
        <div
          key={option.label}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === at}
          className={styles["option"]}
          // or the field would lose the focus first
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onTake(option)}
        >
          <code>{option.label}</code> <span className={styles["note"]}>{option.note}</span>
        </div>
      ))}
    </div>
  );
}
