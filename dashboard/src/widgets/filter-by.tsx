import { type MouseEvent, type ReactNode, createContext, use } from "react";
import styles from "./filter-by.module.css";

/** Puts a word into the filter of a list, `client:s1`; with `exclude` the list leaves out what has it. */
export const FilterContext = createContext<(word: string, value: string, exclude: boolean) => void>(() => undefined);

/** A value that filters the list when it is clicked; with Alt the list leaves out what has it. */
export function FilterBy({ word, value, children }: { word: string; value: string; children: ReactNode }) {
  const filter = use(FilterContext);
  const press = (event: MouseEvent) => {
    event.stopPropagation();
    filter(word, value, event.altKey);
  };
  return (
    // not in the tab order, which has one stop per row: fields above the list, and the panel of a row, do the same
    <button type="button" tabIndex={-1} className={styles["value"]} title={`Only ${word}: ${value}. With Alt: all others`} onClick={press}>
      {children}
    </button>
  );
}
