import { useMemo } from "react";
import type { Entry } from "~/protocol/schema";
import { formatOffset } from "~/ui/time-format";
import { DirectionBadge } from "~/widgets/badges";
import styles from "./calls.module.css";
import { MarkBadge } from "./compare-table";
import type { Mark } from "./json-diff";
import { type Pair, type Step, align, stepsOf } from "./sequence";

function markOf({ a, b }: Pair): Mark {
  if (a === null) return "only B";
  if (b === null) return "only A";
  return a.text === b.text ? "same" : "differs";
}

/** The messages of both calls in order, alike ones in one line, each with its time since the start of its call. */
export function CompareMessages({ a, b, only }: { a: readonly Entry[]; b: readonly Entry[]; only: boolean }) {
  const pairs = useMemo(() => align(stepsOf(a), stepsOf(b)), [a, b]);
  const shown = only ? pairs.filter((pair) => markOf(pair) !== "same") : pairs;
  if (shown.length === 0) return <p className={styles["quiet"]}>{pairs.length === 0 ? "The evidence of these calls has no messages." : "No differences in the messages of the evidence."}</p>;
  return (
    <table className={styles["compare"]} aria-label="Messages">
      <thead>
        <tr>
          <th scope="col" className={styles["time"]}>
            A at
          </th>
          <th scope="col">A</th>
          <th scope="col" className={styles["time"]}>
            B at
          </th>
          <th scope="col">B</th>
          <th scope="col" className={styles["mark"]}>
            Compared
          </th>
        </tr>
      </thead>
      <tbody>
        {shown.map((pair) => (
          <tr key={`${pair.a?.seq ?? ""}-${pair.b?.seq ?? ""}`} data-differs={markOf(pair) === "same" ? undefined : ""}>
            <Message step={pair.a} />
            <Message step={pair.b} />
            <td>
              <MarkBadge mark={markOf(pair)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Message({ step }: { step: Step | null }) {
  if (step === null) {
    return (
      <>
        <td className={styles["time"]}>–</td>
        <td className={styles["quiet"]}>no such message</td>
      </>
    );
  }
  return (
    <>
      <td className={styles["time"]}>{formatOffset(step.offset)}</td>
      <td>
        {step.direction !== null && <DirectionBadge direction={step.direction} />} {step.text}
      </td>
    </>
  );
}
