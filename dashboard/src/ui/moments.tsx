import { type ReactNode, useState } from "react";
import { Button } from "./button";
import styles from "./moments.module.css";
import { formatOffset } from "./time-format";

export interface Moment {
  key: string | number;
  /** Milliseconds since the moment that the list counts from. */
  offset: number;
  /** What happened, in a few words or badges. */
  what: ReactNode;
  detail?: ReactNode;
}

interface MomentsProps {
  label: string;
  moments: readonly Moment[];
}

// enough for nearly every call; thousands of rows would make opening one slow
const SHOWN = 300;

/** What happened one after the other, each with its distance from the beginning. */
export function Moments({ label, moments }: MomentsProps) {
  const [all, setAll] = useState(false);
  const shown = all ? moments : moments.slice(0, SHOWN);
  return (
    <>
      <ol className={styles["moments"]} aria-label={label}>
        {shown.map(({ key, offset, what, detail }) => (
          <li key={key} className={styles["moment"]}>
            <span className={styles["offset"]}>{formatOffset(offset)}</span>
            <span className={styles["what"]}>{what}</span>
            <span className={styles["detail"]}>{detail}</span>
          </li>
        ))}
      </ol>
      {shown.length < moments.length && (
        <Button small onClick={() => setAll(true)}>
          {moments.length - shown.length} more
        </Button>
      )}
    </>
  );
}
