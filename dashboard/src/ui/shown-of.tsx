import styles from "./shown-of.module.css";

// as many rows of a table as the server keeps, and this page
const MOST = 2_000;

/** How many rows pass the filters, of how many that the page has. */
export function ShownOf({ shown, all }: { shown: number; all: number }) {
  return (
    <span className={styles["count"]}>
      {shown} of {all < MOST ? all : `the newest ${all}`}
    </span>
  );
}
