import styles from "./timeline.module.css";

/** The fills that tell outcomes apart without colour; the bars name them by their id. */
export function Patterns() {
  return (
    <svg className={styles["defs"]} width={0} height={0} aria-hidden="true">
      <defs>
        <pattern id="hatch" width={6} height={6} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width={2} height={6} className={styles["ink"]} />
        </pattern>
        <pattern id="cross" width={6} height={6} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path d="M0 0 H6 M0 0 V6" className={styles["inkLine"]} />
        </pattern>
        <pattern id="dots" width={5} height={5} patternUnits="userSpaceOnUse">
          <circle cx={2.5} cy={2.5} r={1.3} className={styles["ink"]} />
        </pattern>
      </defs>
    </svg>
  );
}
