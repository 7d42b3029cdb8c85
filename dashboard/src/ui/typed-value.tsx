import styles from "./typed-value.module.css";

type Scalar = string | number | boolean | null;

/** A JSON value of one word with its type, so that 5 and "5" can be told apart, and "" from nothing. */
export function TypedValue({ value }: { value: Scalar }) {
  return (
    <span className={styles["typed"]}>
      <code>{JSON.stringify(value)}</code> {value !== null && <span className={styles["type"]}>{typeOf(value)}</span>}
    </span>
  );
}

function typeOf(value: string | number | boolean): string {
  if (typeof value !== "number") return typeof value;
  if (!Number.isInteger(value)) return "number";
  return Number.isSafeInteger(value) ? "integer" : "integer, about: it has more digits than this page can hold";
}
