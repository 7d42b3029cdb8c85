import { Link } from "wouter";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError, apiUrl, get } from "~/protocol/client";
import type { JudgedRule, JudgedSubject, JudgeReport, RuleInfo, RuleList } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import { isFinding } from "~/trace/findings";
import { idle, PACE, useJudged, useLogEnd } from "~/trace/use-judged";
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

/** The whole report on one client, asked for again while the client works and the page is in view. */
function useReport(client: string) {
  const { state, run } = useJudged();
  useRefresh(["report"], useLogEnd(), PACE);
  return useQuery({
    queryKey: ["report", run, client],
    queryFn: ({ signal }) => get<JudgeReport>(`/judge/${encodeURIComponent(client)}`, {}, signal),
    enabled: state === "on",
    refetchInterval: idle,
  });
}

/** The catalogue by the ids of its rules; it never changes while the server runs. */
function useRules() {
  const { run } = useJudged();
  return useQuery({
    queryKey: ["rules", run],
    queryFn: ({ signal }) => get<RuleList>("/judge/rules", {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
    select: byId,
  });
}

function byId({ rules }: RuleList): ReadonlyMap<string, RuleInfo> {
  return new Map(rules.map((rule) => [rule.rule, rule]));
}

/** How long a rule is marked that was decided just now, in milliseconds. */
const MARKED = 5_000;

/**
 * The rules whose verdict has become another one while the page was shown, each for a moment.
 *
 * What was decided before the page was opened is not new.
 */
function useFresh(verdicts: readonly JudgedRule[]): ReadonlySet<string> {
  const known = useRef<ReadonlyMap<string, string>>(undefined);
  const timers = useRef(new Set<ReturnType<typeof setTimeout>>());
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const before = known.current;
    known.current = new Map(verdicts.map(({ rule, verdict }) => [rule, verdict]));
    if (before === undefined) return;
    const decided = verdicts.filter(({ rule, verdict }) => verdict !== (before.get(rule) ?? "NOT_OBSERVED")).map(({ rule }) => rule);
    if (decided.length === 0) return;
    setFresh((all) => new Set([...all, ...decided]));
    const timer = setTimeout(() => {
      timers.current.delete(timer);
      setFresh((all) => new Set([...all].filter((rule) => !decided.includes(rule))));
    }, MARKED);
    timers.current.add(timer);
  }, [verdicts]);
  useEffect(() => {
    const all = timers.current;
    return () => {
      for (const timer of all) clearTimeout(timer);
      all.clear();
    };
  }, []);
  return fresh;
}
