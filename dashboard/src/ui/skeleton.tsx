import styles from "./skeleton.module.css";

interface SkeletonProps {
  /** What is waited for. */
  label: string;
  /** How many bars stand for it. */
  bars?: number;
}

/** What stands for a part of a page while its data is on the way. It shows after a fifth of a second, so that what comes sooner does not flash. */
export function Skeleton({ label, bars = 6 }: SkeletonProps) {
  return (
    <div role="status" className={styles["skeleton"]}>
      <span className={styles["label"]}>{label}</span>
      {Array.from({ length: bars }, (_, at) => (
        // the bars of a skeleton never move
        // oxlint-disable-next-line react/no-array-index-key
        <span key={at} className={styles["bar"]} aria-hidden="true" />
      ))}
    </div>
  );
}
