import { Link } from "wouter";
import { type Finding, faultOf, looksOf, clientHref } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { Badge } from "~/ui/badge";
import styles from "./judged.module.css";

interface FindingMarksProps {
  findings: readonly Finding[];
  /** False inside a row, which has one stop for the keyboard: what the row opens has the same links. */
  reachable?: boolean;
}

/** A small link to each finding, by the id of its rule; nothing where there are none. */
export function FindingMarks({ findings, reachable = true }: FindingMarksProps) {
  return findings.map(({ client, rule }) => {
    const { sign, tone, word } = looksOf(rule.verdict);
    return (
      <Link
        key={`${client} ${rule.rule}`}
        href={clientHref(client, rule.rule)}
        className={`${styles["mark"]} ${reachable ? "" : styles["inRow"]}`}
        title={`${word}: ${faultOf(rule)}. ${rule.remark}`}
        {...(!reachable && { tabIndex: -1 })}
        onClick={(event) => event.stopPropagation()}
      >
        <Badge tone={tone}>
          {sign} {rule.rule}
        </Badge>
      </Link>
    );
  });
}

/** The findings that rest on an entry of a run. */
export function EntryMarks({ run, seq, reachable = true }: { run: string; seq: number; reachable?: boolean }) {
  const judged = useJudged();
  const findings = run === judged.run ? judged.byEntry.get(seq) : undefined;
  return findings === undefined ? null : <FindingMarks findings={findings} reachable={reachable} />;
}
