import type { ReactNode } from "react";
import styles from "./empty-state.module.css";

/** What stands where there is nothing yet: why, and what to do about it. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles["empty"]}>
      <h2>{title}</h2>
      <div className={styles["body"]}>{children}</div>
    </div>
  );
}
