import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import type { JudgedExample, JudgedRule } from "~/protocol/schema";
import type { Viewed } from "~/trace/entry";
import { useEntry } from "~/trace/use-entry";
import { Time } from "~/ui/time";
import { DirectionBadge } from "~/widgets/badges";
import { describe } from "~/words/summary";
import styles from "./report.module.css";

interface EvidenceProps {
  run: string;
  rule: Pick<JudgedRule, "verdict" | "remark" | "examples" | "count" | "counts">;
}

/** The first and the last opportunity with the verdict of the rule, and the entries that each rests on. */
export function Evidence({ run, rule }: EvidenceProps) {
  const examples = rule.examples.filter(({ verdict, entries }) => verdict === rule.verdict && entries.length > 0);
  const count = rule.counts[rule.verdict] ?? 0;
  if (examples.length === 0) return null;
  return (
    <div>
      <h3>
        Evidence{count > examples.length && <span className={styles["quiet"]}>, {examples.length} of {count}</span>}
      </h3>
      <ol className={styles["evidence"]}>
        {examples.map((example) => (
          <li key={example.entries.join(" ")}>
            <Example run={run} example={example} remark={rule.remark} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Example({ run, example: { entries, remark }, remark: said }: { run: string; example: JudgedExample; remark: string }) {
  return (
    <>
      {remark !== "" && remark !== said && <p>{remark}</p>}
      <ul className={styles["entries"]}>
        {entries.map((seq) => (
          <li key={seq}>
            <Entry run={run} seq={seq} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Which way a message went; of what is no message the kind of entry. */
function Direction({ of }: { of: Viewed }) {
  const { direction } = of.view;
  return direction === null ? <code>{of.kind}</code> : <DirectionBadge direction={direction} />;
}

function Entry({ run, seq }: { run: string; seq: number }) {
  const { data, error } = useEntry(run, seq);
  return (
    <>
      <Link href={traceHref({ at: `${run}-${seq}` })}>#{seq}</Link>
      {data !== undefined && (
        <span>
          <Time at={data.at} /> <Direction of={data} /> {describe(data, data.view.method)}
        </span>
      )}
      {error !== null && <span className={styles["quiet"]}>no longer in the log</span>}
    </>
  );
}
