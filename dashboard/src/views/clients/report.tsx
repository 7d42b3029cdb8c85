import { useEffect, useMemo, useRef, useState } from "react";
import { writeJson } from "~/protocol/json";
import type { JudgedRule, JudgedSubject, JudgeReport, RuleInfo } from "~/protocol/schema";
import { faultOf, isFinding, looksOf, useJudged } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import { KeyValues, Panel } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { counted, UNATTRIBUTED } from "~/words/text";
import { Checklist } from "./checklist";
import { type Client, conclusionOn, moodOf, titleOf } from "./clients";
import { Dated, RuleFigures } from "./figures";
import { FindingList } from "./findings";
import styles from "./report.module.css";
import { type Cell, type Group, groupsOf, placeOf } from "./rule-words";

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
          <p className={`${styles["said"]} aside`}>The log does not contain enough to decide.</p>
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

interface HeadlineProps {
  client: Client;
  subject: JudgedSubject;
  /** Left out until all of it has come. */
  report?: JudgeReport;
  fresh?: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

/** The verdict in one sentence, and what it rests on in numbers. */
export function Headline({ client, subject, report, fresh = NOTHING }: HeadlineProps) {
  const { title, aside } = titleOf(client);
  return (
    <section className={`${styles["headline"]} column`} aria-label="Conclusion">
      <p className="answer" data-tone={moodOf(subject)}>
        <Dated text={`${conclusionOn(title, subject)}.`} />
      </p>
      <p className={`${styles["said"]} aside`}>
        {[aside, placeOf(subject)].filter((part) => part !== "").join("; ")}
        {client.lastAt > 0 && (
          <>
            ; last message <Time at={client.lastAt} look="ago" />
          </>
        )}
      </p>
      <RuleFigures subject={subject} whole />
      <JustDecided subject={subject} fresh={fresh} />
      {report !== undefined && <Notices report={report} subject={subject} />}
    </section>
  );
}

// more are in the lists below, each with its mark
const NAMED = 4;

/** What was decided a moment ago, for the eye and for those who hear the page. */
function JustDecided({ subject, fresh }: Required<Pick<HeadlineProps, "subject" | "fresh">>) {
  const rules = subject.verdicts.filter(({ rule }) => fresh.has(rule));
  return (
    <p className={`${styles["ticker"]} row`} role="status" aria-label="Decided just now">
      {rules.slice(0, NAMED).map((rule) => {
        const { sign, word, tone } = looksOf(rule.verdict);
        return (
          <Badge key={rule.rule} tone={tone}>
            {sign} {tone === "bad" || tone === "warn" ? faultOf(rule) : `${rule.title}: ${word}`}
          </Badge>
        );
      })}
      {rules.length > NAMED && <span>and {rules.length - NAMED} more</span>}
    </p>
  );
}

/** What weakens the verdicts. */
function Notices({ report, subject }: { report: JudgeReport; subject: JudgedSubject }) {
  const gaps = report.logs.reduce((sum, log) => sum + log.gaps.length, 0);
  const broken = Object.entries(report.broken);
  const notices = [
    subject.several !== null && `More than one client may be judged here: ${subject.several}.`,
    gaps > 0 && `Entries are missing in ${counted(gaps, "place")} of the log. What they could have decided is inconclusive.`,
    !subject.whole && gaps === 0 && "A part of this client's traffic is not in the log. What it could have decided is inconclusive.",
    ...broken.map(([rule, defect]) => `The code of ${rule} has a defect, so it has no verdict: ${defect}.`),
  ];
  return notices.map((notice) => typeof notice === "string" && <p key={notice} className={styles["notice"]}>{notice}</p>);
}

/** The rules of which every opportunity was taken. */
function Passed({ subject, fresh }: { subject: JudgedSubject; fresh: ReadonlySet<string> }) {
  const passed = subject.verdicts.filter(({ verdict }) => verdict === "PASS");
  if (passed.length === 0) return null;
  return (
    <Panel title={`Passed: ${passed.length}`}>
      <ul className={styles["passed"]}>
        {passed.map((rule) => (
          <li key={rule.rule} className={fresh.has(rule.rule) ? styles["fresh"] : undefined}>
            {rule.title} <span className="aside">{counted(rule.count, "check")}{fresh.has(rule.rule) && ", decided just now"}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** What was measured without a verdict. */
function Measured({ subject: { measured } }: { subject: JudgedSubject }) {
  const values = Object.entries(measured);
  if (values.length === 0) return null;
  return (
    <Panel title="Measured">
      <KeyValues items={values.map(([name, value]) => [name, typeof value === "string" ? value : writeJson(value, 0)])} />
    </Panel>
  );
}

/** What no server can see, so that nobody takes a report without findings for a proof. */
function NotVisible({ report }: { report: JudgeReport }) {
  return (
    <Panel title="Not visible from a server">
      <ul className={styles["titles"]}>
        {report.not_visible.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </Panel>
  );
}

function State({ cell }: { cell: Cell | undefined }) {
  if (cell === undefined || cell.state === "absent") return <span className={styles["absent"]}>not in this revision</span>;
  const { state, observed, all } = cell;
  if (state === "not tried") return <span className="aside">not tried</span>;
  const { sign, word, tone } = looksOf(state);
  return (
    <span className={styles["cell"]}>
      <Badge tone={tone}>
        {sign} {word}
      </Badge>
      <span className="aside" title={`${observed} of ${all} rules were exercised`}>
        {observed} of {all}
      </span>
    </span>
  );
}

/** What was found by feature, at the revisions that the client has spoken. */
function Matrix({ subject, rules }: { subject: JudgedSubject; rules: ReadonlyMap<string, RuleInfo> }) {
  const { revisions } = subject;
  const groups = useMemo(() => groupsOf(subject, rules, revisions), [subject, rules, revisions]);
  const tried = groups.filter(({ cells }) => cells.some(isTried));
  const others = groups.filter((group) => !tried.includes(group));
  if (groups.length === 0) return null;
  return (
    <Panel title="By feature: the worst verdict, and how many rules were exercised">
      {tried.length > 0 && <PlainTable caption="By feature and revision" hidden columns={columnsOf(revisions)} rows={tried} rowKey={({ name }) => name} />}
      {others.length > 0 && <p className={`${styles["untried"]} aside`}>Not tried: {others.map(({ name }) => name).join(", ")}.</p>}
    </Panel>
  );
}

const isTried = ({ state }: Cell) => state !== "absent" && state !== "not tried";

function columnsOf(revisions: readonly string[]): readonly PlainColumn<Group>[] {
  const cells = revisions.map((revision, at): PlainColumn<Group> => ({ key: revision, head: revision, cell: (group) => <State cell={group.cells[at]} /> }));
  return [{ key: "group", head: "Rules about", cell: ({ name }) => name }, ...cells];
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
