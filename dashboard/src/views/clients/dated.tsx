import styles from "./figures.module.css";

/** A text in which no date is broken at the end of a line. */
export function Dated({ text }: { text: string }) {
  return text.split(/(\d{4}-\d{2}-\d{2})/).map((part, at) => {
    // the parts of a text never move
    // oxlint-disable-next-line react/no-array-index-key
    return at % 2 === 0 ? part : <span key={at} className={styles["date"]}>{part}</span>;
  });
}
