import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { createContext, type KeyboardEvent, type ReactNode, use, useEffect, useEffectEvent, useId, useRef, useState } from "react";
import { get } from "~/protocol/client";
import type { Completion, FilterReading } from "~/protocol/schema";
import { ValueButton } from "~/ui/buttons";
import { FieldError, INPUT, useDraft } from "~/ui/fields";
import styles from "./filter-line.module.css";

/** Puts a word into the filter of a list, `client:s1`; with `exclude` the list leaves out what has it. */
export const FilterContext = createContext<(word: string, value: string, exclude: boolean) => void>(() => undefined);

/** A value that filters the list when it is clicked; with Alt the list leaves out what has it. */
export function FilterBy({ word, value, children }: { word: string; value: string; children: ReactNode }) {
  const filter = use(FilterContext);
  return (
    // fields above the list, and the panel of a row, do the same
    <ValueButton title={`Only ${word}: ${value}. With Alt: all others`} onClick={({ altKey }) => filter(word, value, altKey)}>
      {children}
    </ValueButton>
  );
}

interface FilterLineProps {
  value: string;
  /** Called when typing rests for 150 ms with a line that is understood, and at once with Enter or a completion. */
  onChange: (line: string) => void;
}

/** How the server reads a line, with completions at a place. */
const reading = (line: string, at: number) => ({
  queryKey: ["filter", line, at],
  queryFn: ({ signal }: { signal: AbortSignal }) => get<FilterReading>("/filter", { line, at }, signal),
  staleTime: 30_000,
});

const next = (at: number, count: number) => (at + 1 < count ? at + 1 : 0);
const before = (at: number, count: number) => (at > 0 ? at - 1 : count - 1);

/**
 * One line of words that filter, with completion: a combobox whose list opens while typing and by the down arrow.
 *
 * `/` goes to it. Enter or Tab takes the chosen completion, Tab also the only one; Escape closes the list, and then clears the line.
 */
export function FilterLine({ value, onChange }: FilterLineProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [caret, setCaret] = useState(0);
  const { text, set, passed, pass } = useDraft(value);
  // asked about the line that rests in the field, and no other: a late answer to an earlier one changes nothing
  const { data: answer } = useQuery({ ...reading(passed, passed.length), enabled: passed !== "" && passed !== value });
  const understood = passed === text && passed !== value && (passed === "" || answer?.error === null);
  const change = useEffectEvent(onChange);
  useEffect(() => {
    if (understood) change(passed);
  }, [understood, passed]);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const { data, isFetching } = useQuery({ ...reading(text, caret), enabled: open, placeholderData: keepPreviousData });
  const { data: whole } = useQuery({ ...reading(text, text.length), enabled: text !== "" && text !== value, placeholderData: keepPreviousData });
  const error = text === "" || text === value ? null : (whole?.error ?? null);
  const options = open ? (data?.completions ?? []) : [];
  const at = Math.min(chosen, options.length - 1);
  const take = ({ start, end, insert }: Completion) => {
    const line = text.slice(0, start) + insert + text.slice(end);
    const caretAt = start + insert.length;
    set(line);
    setCaret(caretAt);
    setChosen(-1);
    // a key waits for its value
    setOpen(!insert.endsWith(" "));
    if (insert.endsWith(" ")) pass(line);
    // behind the end of the change, once React has written it
    requestAnimationFrame(() => input.current?.setSelectionRange(caretAt, caretAt));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const option = options[at] ?? (event.key === "Tab" && options.length === 1 && text !== "" ? options[0] : undefined);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      setChosen(event.key === "ArrowDown" ? next(at, options.length) : before(at, options.length));
    } else if ((event.key === "Enter" || event.key === "Tab") && option !== undefined) {
      event.preventDefault();
      take(option);
    } else if (event.key === "Enter") {
      setOpen(false);
      pass(text);
    } else if (event.key === "Escape" && (options.length > 0 || text !== "")) {
      event.stopPropagation();
      // the list is about to open
      if (options.length > 0 || (open && isFetching)) setOpen(false);
      else pass("");
    }
  };
  return (
    <span className={styles["filter"]}>
      <input
        ref={input}
        type="text"
        role="combobox"
        className={`${INPUT} ${styles["input"]}`}
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
          (event.target.value === "" ? pass : set)(event.target.value);
          setCaret(event.target.selectionStart ?? event.target.value.length);
          setOpen(true);
          setChosen(-1);
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
    <div id={`${id}-list`} role="listbox" aria-label="Completions" className={`${styles["list"]} raised`} hidden={options.length === 0}>
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
          <code>{option.label}</code> <span className="cut aside">{option.note}</span>
        </div>
      ))}
    </div>
  );
}
