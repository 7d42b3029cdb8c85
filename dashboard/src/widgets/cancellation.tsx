import type { ReactNode } from "react";
import { Fact, Facts } from "~/ui/key-values";
import { causeOf } from "~/words/states";
import styles from "./cancellation.module.css";

interface CancellationProps {
  by: string;
  reason: string | null;
  /** From the moment of cancellation until all of the work had stopped, in milliseconds; null is unknown. */
  latency: number | null;
  /** How many messages were sent after it; null where the entry that says so is gone. */
  after: number | null;
  /** More of it: `Fact`s. */
  children?: ReactNode;
}

/** Who stopped the work, how long that took, and whether anything was still said. */
export function Cancellation({ by, reason, latency, after, children }: CancellationProps) {
  return (
    <Facts>
      <Fact name="By">
        <strong className={styles["by"]}>{causeOf(by)}</strong>
      </Fact>
      <Fact name="Reason">{reason ?? "none given"}</Fact>
      <Fact name="Latency">{latency === null ? "unknown" : `${latency} ms until the work had stopped`}</Fact>
      <Fact name="Messages after">{after ?? "unknown: the entry that says it is gone"}</Fact>
      {children}
    </Facts>
  );
}
