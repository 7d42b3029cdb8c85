import { type Scalar, isRounded, scalarText } from "~/protocol/json";
import styles from "./typed-value.module.css";

/** A JSON value of one word with its type, so that 5 and "5" can be told apart, and "" from nothing. */
export function TypedValue({ value }: { value: Scalar }) {
  return (
    <span className={styles["typed"]}>
      <code>{scalarText(value)}</code> {value !== null && <span className={styles["type"]}>{typeOf(value)}</span>}
    </span>
  );
}

function typeOf(value: string | number | bigint | boolean): string {
  if (typeof value === "bigint") return "integer";
  if (typeof value !== "number") return typeof value;
  if (!Number.isInteger(value)) return "number";
  return isRounded(value) ? "integer, about: it has more digits than this browser reads" : "integer";
}
