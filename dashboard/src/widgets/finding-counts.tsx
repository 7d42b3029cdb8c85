import type { JudgedSubject } from "~/protocol/schema";
import { VERDICTS } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import styles from "./judged.module.css";

/** How many rules have each verdict: those that there are, and what was not observed always. */
export function Counts({ subject: { summary } }: { subject: Pick<JudgedSubject, "summary"> }) {
  return (
    <span className={styles["counts"]}>
      {VERDICTS.map(([verdict, { word, sign, tone }]) => {
        const count = summary[verdict] ?? 0;
        if (count === 0 && verdict !== "NOT_OBSERVED") return null;
        return (
          <Badge key={verdict} tone={tone}>
            {sign} {count} {word}
          </Badge>
        );
      })}
    </span>
  );
}
