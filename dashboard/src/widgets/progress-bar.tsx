import type { JsonNumber } from "~/protocol/json";
import { shareText } from "~/words/share";
import { stateOf } from "~/words/states";
import styles from "./progress-bar.module.css";

interface ProgressBarProps {
  /** Names it for a screen reader, such as "progress of task 7". */
  label: string;
  done: JsonNumber | null;
  /** Without a total there is no share to show: the bar moves while the status is one that runs. */
  total: JsonNumber | null;
  /** Colours the bar, as words/states.ts has it. */
  status?: string;
}

const RUNNING = new Set(["running", "working", "queued", "input_required"]);

/** How far something got, as a bar and in words. */
export function ProgressBar({ label, done, total, status = "running" }: ProgressBarProps) {
  const share = done !== null && total !== null && total > 0 ? Math.min(1, Math.max(0, Number(done) / Number(total))) : null;
  const tone = styles[stateOf(status).tone];
  const moving = share === null && RUNNING.has(status);
  const text = done === null ? "" : shareText(done, total);
  return (
    <span className={styles["bar"]}>
      <span
        className={styles["track"]}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={share === null ? undefined : Math.round(share * 100)}
        aria-valuetext={text === "" ? undefined : text}
      >
        {(share !== null || moving) && (
          <span
            className={`${styles["fill"]} ${tone} ${moving ? styles["moving"] : ""}`}
            style={share === null ? undefined : { width: `${share * 100}%` }}
          />
        )}
      </span>
      <span className={styles["text"]}>{text}</span>
    </span>
  );
}
