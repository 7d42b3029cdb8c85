import type { JudgedSubject, JudgeReport, RuleInfo } from "~/protocol/schema";
import { isFinding } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { Panel } from "~/ui/panel";
import { UNATTRIBUTED } from "~/words/client-name";
import { Checklist } from "./checklist";
import type { Client } from "./clients";
import { FindingList } from "./finding-list";
import { Headline } from "./report-headline";
import { Measured, NotVisible, Passed } from "./report-rest";
import styles from "./report.module.css";
import { Matrix } from "./rule-matrix";
import { useFresh } from "./use-report";

interface ReportProps {
  client: Client;
  report: JudgeReport;
  subject: JudgedSubject;
  rules: ReadonlyMap<string, RuleInfo>;
}

/** Everything that the judge says of one client: first what is wrong, then what to try. */
export function Report({ client, report, subject, rules }: ReportProps) {
  const { run } = useJudged();
  const fresh = useFresh(subject.verdicts);
  const found = subject.verdicts.filter(isFinding);
  const unclear = subject.verdicts.filter(({ verdict }) => verdict === "INCONCLUSIVE");
  const known = subject.label !== UNATTRIBUTED;
  const shared = { run, rules, revisions: subject.revisions, fresh };
  return (
    <>
      <Headline client={client} report={report} subject={subject} fresh={fresh} />
      {found.length > 0 && (
        <Panel title={`Findings: ${found.length}`}>
          <FindingList found={found} opened {...shared} />
        </Panel>
      )}
      {unclear.length > 0 && (
        <Panel title={`Inconclusive: ${unclear.length}`}>
          <p className={styles["quiet"]}>The log does not contain enough to decide.</p>
          <FindingList found={unclear} {...shared} />
        </Panel>
      )}
      {known && <Checklist subject={subject} rules={rules} />}
      {known && <Matrix subject={subject} rules={rules} />}
      <Passed subject={subject} fresh={fresh} />
      <Measured subject={subject} />
      <NotVisible report={report} />
    </>
  );
}
