import styles from "./skip-link.module.css";

/** Lets the keyboard pass the header; shown when it has the focus. */
export function SkipLink({ to }: { to: string }) {
  return (
    <a className={styles["skip"]} href={`#${to}`}>
      Skip to content
    </a>
  );
}
