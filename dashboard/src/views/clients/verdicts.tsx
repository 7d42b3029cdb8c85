import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { JudgedRule, JudgedSubject, SessionRow } from "~/protocol/schema";
import { newestEvents } from "~/trace/event-pages";
import { looksOf, reportHref } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { Badge } from "~/ui/badge";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Counts } from "~/widgets/finding-counts";
import { JudgeOff } from "~/widgets/judge-off";
import { UNATTRIBUTED } from "~/words/client-name";
import styles from "./sessions.module.css";

/** What the judge says of the client; that nobody judges where that is so. */
export function Verdicts({ row }: { row: SessionRow }) {
  const { state, answered } = useJudged();
  const subjects = useSubjects(row);
  return (
    <section className={styles["part"]} aria-label="Verdicts of the judge">
      <h3>Verdicts of the judge</h3>
      {state === "off" && <JudgeOff />}
      {(state === "waiting" || (state === "on" && !answered)) && <p>Waiting for the server.</p>}
      {answered && subjects.length === 0 && <p>The judge has nothing on this client yet, or has forgotten it for newer ones.</p>}
      {subjects.map((subject) => (
        <OnSubject key={subject.label} subject={subject} />
      ))}
    </section>
  );
}

/** The judge calls a client by its label; one without by its session, or by the connection that brings its messages. */
function useSubjects(row: SessionRow): readonly JudgedSubject[] {
  const { state, run, subjects } = useJudged();
  const connected = row.label === null && row.transport !== "http" && row.id !== UNATTRIBUTED;
  const { data: connection } = useQuery({
    queryKey: ["connection", run, row.id],
    queryFn: async ({ signal }) => (await newestEvents({ session: row.id }, 1, signal)).events[0]?.connection ?? null,
    enabled: state === "on" && connected,
  });
  const names = new Set([row.label ?? row.id, row.id, connection]);
  return subjects.filter(({ label }) => names.has(label));
}

function OnSubject({ subject }: { subject: JudgedSubject }) {
  const { label, verdicts } = subject;
  return (
    <>
      <p>
        <Link href={reportHref(label)}>Report on {label}</Link>
      </p>
      <Counts subject={subject} />
      {verdicts.length === 0 && <p>No rule that was observed was broken. A rule that was not observed says nothing.</p>}
      {verdicts.length > 0 && <PlainTable caption={`Findings: ${verdicts.length}`} columns={columnsOf(label)} rows={verdicts} rowKey={({ rule }) => rule} />}
    </>
  );
}

function columnsOf(client: string): readonly PlainColumn<JudgedRule>[] {
  return [
    { key: "verdict", head: "Verdict", cell: ({ verdict }) => <Word verdict={verdict} /> },
    {
      key: "rule",
      head: "Rule",
      cell: ({ rule, title, remark }) => (
        <>
          <Link href={reportHref(client, rule)}>{title}</Link>
          <br />
          <span className={styles["note"]}>{remark}</span>
        </>
      ),
    },
  ];
}

function Word({ verdict }: Pick<JudgedRule, "verdict">) {
  const { sign, word, tone } = looksOf(verdict);
  return (
    <Badge tone={tone}>
      {sign} {word}
    </Badge>
  );
}
