import styles from "./shown-of.module.css";

/** How many rows pass the filters, of how many. */
export function ShownOf({ shown, all }: { shown: number; all: number }) {
  return (
    <span className={styles["count"]}>
      {shown} of {all}
    </span>
  );
}
