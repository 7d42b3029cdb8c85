import { useMemo } from "react";
import type { JudgedSubject, RuleInfo } from "~/protocol/schema";
import { looksOf } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import { Panel } from "~/ui/panel";
import { PlainTable } from "~/ui/plain-table";
import styles from "./report.module.css";
import { type Cell, type Group, groupsOf, REVISIONS } from "./rule-words";

const COLUMNS = [
  { key: "group", head: "Rules about", cell: ({ name }: Group) => <code>{name}</code> },
  ...REVISIONS.map((revision, at) => ({ key: revision, head: revision, cell: ({ cells }: Group) => <State cell={cells[at]} /> })),
];

function State({ cell }: { cell: Cell | undefined }) {
  if (cell === undefined || cell.state === "absent") return <span className={styles["absent"]}>not in this revision</span>;
  const { state, observed, all } = cell;
  if (state === "not tried") return <span className={styles["quiet"]}>not tried</span>;
  const { sign, word, tone } = looksOf(state);
  return (
    <span className={styles["cell"]}>
      <Badge tone={tone}>
        {sign} {word}
      </Badge>
      <span className={styles["quiet"]} title={`${observed} of ${all} rules were observed`}>
        {observed} of {all}
      </span>
    </span>
  );
}

/** What was found by feature and revision. */
export function Matrix({ subject, rules }: { subject: JudgedSubject; rules: ReadonlyMap<string, RuleInfo> }) {
  const groups = useMemo(() => groupsOf(subject, rules), [subject, rules]);
  return (
    <Panel title="By feature and revision">
      {/* what scrolls must be reachable by keyboard */}
      <div className={styles["wide"]} role="group" tabIndex={0} aria-label="By feature and revision">
        <PlainTable caption="The worst verdict of each group of rules, and how many of them were observed" columns={COLUMNS} rows={groups} rowKey={({ name }) => name} />
      </div>
    </Panel>
  );
}
