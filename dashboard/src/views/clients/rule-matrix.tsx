import { useMemo } from "react";
import type { JudgedSubject, RuleInfo } from "~/protocol/schema";
import { looksOf } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import { Panel } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import styles from "./report.module.css";
import { type Cell, type Group, groupsOf } from "./rule-words";

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
      <span className={styles["quiet"]} title={`${observed} of ${all} rules were exercised`}>
        {observed} of {all}
      </span>
    </span>
  );
}

/** What was found by feature, at the revisions that the client has spoken. */
export function Matrix({ subject, rules }: { subject: JudgedSubject; rules: ReadonlyMap<string, RuleInfo> }) {
  const { revisions } = subject;
  const groups = useMemo(() => groupsOf(subject, rules, revisions), [subject, rules, revisions]);
  const tried = groups.filter(({ cells }) => cells.some(isTried));
  const others = groups.filter((group) => !tried.includes(group));
  if (groups.length === 0) return null;
  return (
    <Panel title="By feature: the worst verdict, and how many rules were exercised">
      {tried.length > 0 && <PlainTable caption="By feature and revision" hidden columns={columnsOf(revisions)} rows={tried} rowKey={({ name }) => name} />}
      {others.length > 0 && <p className={styles["untried"]}>Not tried: {others.map(({ name }) => name).join(", ")}.</p>}
    </Panel>
  );
}

const isTried = ({ state }: Cell) => state !== "absent" && state !== "not tried";

function columnsOf(revisions: readonly string[]): readonly PlainColumn<Group>[] {
  const cells = revisions.map((revision, at): PlainColumn<Group> => ({ key: revision, head: revision, cell: (group) => <State cell={group.cells[at]} /> }));
  return [{ key: "group", head: "Rules about", cell: ({ name }) => name }, ...cells];
}
