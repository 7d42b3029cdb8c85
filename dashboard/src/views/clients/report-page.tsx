import { Link } from "wouter";
import { ApiError, apiUrl } from "~/protocol/client";
import type { JudgeReport, JudgedSubject, RuleInfo } from "~/protocol/schema";
import { isFinding } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { useReport, useRules } from "~/trace/use-report";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Panel, Stack } from "~/ui/panel";
import { UNATTRIBUTED } from "~/words/client-name";
import { Checklist } from "./checklist";
import { FindingList } from "./finding-list";
import { Headline } from "./report-headline";
import { Measured, NotVisible, Passed } from "./report-rest";
import styles from "./report.module.css";
import { Matrix } from "./rule-matrix";
import { useFresh } from "./use-fresh";

/** Everything that the judge says of one client. */
export function ReportPage({ client }: { client: string }) {
  const report = useReport(client);
  const rules = useRules();
  const subject = report.data?.subjects[0];
  return (
    <Page title={`Report on ${client}`} tools={<Tools client={client} there={subject !== undefined} />} scroll>
      {report.data === undefined || subject === undefined ? (
        <Missing client={client} error={report.error} />
      ) : rules.data === undefined ? (
        <EmptyState title={rules.error === null ? "Loading the rules" : "The rules could not be loaded"}>{rules.error?.message}</EmptyState>
      ) : (
        <Report report={report.data} subject={subject} rules={rules.data} />
      )}
    </Page>
  );
}

function Tools({ client, there }: { client: string; there: boolean }) {
  const path = `/judge/${encodeURIComponent(client)}`;
  return (
    <nav className={styles["links"]} aria-label="Report">
      <Link href="/report">All reports</Link>
      {there && <a href={apiUrl(`${path}/card`)}>Card to print or attach</a>}
      {there && <a href={apiUrl(`${path}/junit`)}>JUnit</a>}
      {there && <a href={apiUrl(path)}>JSON</a>}
    </nav>
  );
}

function Missing({ client, error }: { client: string; error: Error | null }) {
  if (error === null) return <EmptyState title="Waiting for the verdicts" />;
  const unknown = error instanceof ApiError && error.status === 404;
  return (
    <EmptyState title={unknown ? "This client was not seen" : "The verdicts could not be loaded"}>
      <p role="alert">{error.message}</p>
      {unknown && (
        <p>
          Connect it to <code>/mcp?client={client}</code>; this page shows the verdicts as they come.
        </p>
      )}
    </EmptyState>
  );
}

interface ReportProps {
  report: JudgeReport;
  subject: JudgedSubject;
  rules: ReadonlyMap<string, RuleInfo>;
}

function Report({ report, subject, rules }: ReportProps) {
  const { run } = useJudged();
  const fresh = useFresh(subject.verdicts);
  const found = subject.verdicts.filter(isFinding);
  const unclear = subject.verdicts.filter(({ verdict }) => verdict === "INCONCLUSIVE");
  const known = subject.label !== UNATTRIBUTED;
  const shared = { run, rules, revisions: subject.revisions, fresh };
  return (
    <Stack>
      <Headline report={report} subject={subject} fresh={fresh} />
      <Panel title={found.length === 0 ? "No findings so far" : `Findings: ${found.length}`}>
        {found.length === 0 && <p className={styles["quiet"]}>No rule that was observed was broken. What was not observed is below.</p>}
        <FindingList found={found} {...shared} />
      </Panel>
      {unclear.length > 0 && (
        <Panel title={`Inconclusive: ${unclear.length}`}>
          <p className={styles["quiet"]}>An opportunity came, and the log cannot decide.</p>
          <FindingList found={unclear} {...shared} />
        </Panel>
      )}
      {known && <Checklist subject={subject} rules={rules} />}
      {known && <Matrix subject={subject} rules={rules} />}
      <Passed subject={subject} fresh={fresh} />
      <Measured subject={subject} />
      <NotVisible report={report} />
    </Stack>
  );
}
