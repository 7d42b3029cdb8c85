import { useQueries, type UseQueryResult } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { traceHref } from "~/protocol/client";
import type { CallRow, Entry, SessionRow } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { clientHref, faultOf, type Finding, keyOf, looksOf, useJudged } from "~/trace/findings";
import { entryQuery } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { Time } from "~/ui/time";
import styles from "./badges.module.css";

interface FindingMarksProps {
  findings: readonly Finding[];
  /** False inside a row, which has one line and one stop for the keyboard: what the row opens has the same links. */
  reachable?: boolean;
}

/** A small link to each finding, by the id of its rule; nothing where there are none. A row has the first, and how many more there are. */
export function FindingMarks({ findings, reachable = true }: FindingMarksProps) {
  const [first, ...others] = findings;
  if (first === undefined) return null;
  if (reachable) return findings.map((finding) => <FindingMark key={keyOf(finding)} finding={finding} reachable />);
  return (
    <>
      <FindingMark finding={first} reachable={false} />
      {others.length > 0 && (
        <span className={`${styles["more"]} aside`} title={others.map(({ rule }) => `${looksOf(rule.verdict).sign} ${rule.rule}`).join("\n")}>
          +{others.length}
        </span>
      )}
    </>
  );
}

function FindingMark({ finding: { client, rule }, reachable }: { finding: Finding; reachable: boolean }) {
  const { sign, tone, word } = looksOf(rule.verdict);
  return (
    <Link
      href={clientHref(client, rule.rule)}
      className={`${styles["rule"]} ${reachable ? "" : styles["inRow"]}`}
      title={`${word}: ${faultOf(rule)}. ${rule.remark}`}
      {...(!reachable && { tabIndex: -1 })}
      onClick={(event) => event.stopPropagation()}
    >
      <Badge tone={tone}>
        {sign} {rule.rule}
      </Badge>
    </Link>
  );
}

/** The findings that rest on an entry of a run. */
export function EntryMarks({ run, seq, reachable = true }: { run: string; seq: number; reachable?: boolean }) {
  const judged = useJudged();
  const findings = run === judged.run ? judged.byEntry.get(seq) : undefined;
  return findings === undefined ? null : <FindingMarks findings={findings} reachable={reachable} />;
}

type Call = Pick<CallRow, "run" | "call" | "exchange" | "session">;

// each is one small question, asked once; a client with more findings than this has them on its report
const ENTRIES = 200;

/** The findings that rest on the calls that are shown: on an entry of a call, or of the exchange that brought it. */
export function useCallFindings(shown: readonly Call[]): (call: Call) => readonly Finding[] {
  const { run, byEntry } = useJudged();
  const sessions = useFeed(({ tables }) => tables.sessions);
  const seqs = useMemo(() => seqsOf(shown.filter((call) => call.run === run), sessions, byEntry), [shown, run, sessions, byEntry]);
  const entries = useQueries({ queries: seqs.map((seq) => entryQuery(run, seq)), combine: loaded });
  return useMemo(() => {
    const found = new Map<string, Set<Finding>>();
    for (const entry of entries) {
      for (const place of placesOf(entry)) {
        const there = found.get(place) ?? new Set();
        for (const finding of byEntry.get(entry.seq) ?? []) there.add(finding);
        found.set(place, there);
      }
    }
    return (call) => (call.run === run ? [...new Set(placesOf(call).flatMap((place) => Array.from(found.get(place) ?? [])))] : []);
  }, [entries, byEntry, run]);
}

/** The newest entries with findings that may be of these calls: of the same clients, and not before the first of the calls. */
function seqsOf(calls: readonly Call[], sessions: readonly SessionRow[], byEntry: ReadonlyMap<number, readonly Finding[]>): readonly number[] {
  const ids = new Set(calls.map(({ session }) => session));
  const clients = new Set(sessions.flatMap(({ id, subject }) => (ids.has(id) ? [subject] : [])));
  const first = calls.reduce((least, { exchange }) => Math.min(least, Math.abs(exchange)), Number.POSITIVE_INFINITY);
  const own = [...byEntry].filter(([seq, findings]) => seq >= first && findings.some(({ client }) => clients.has(client)));
  return own.map(([seq]) => seq).toSorted((a, b) => b - a).slice(0, ENTRIES);
}

function loaded(results: UseQueryResult<Entry>[]): readonly Entry[] {
  return results.flatMap(({ data }) => data ?? []);
}

function placesOf({ call, exchange }: { call: string | null; exchange: number | null }): readonly string[] {
  return [...(call === null ? [] : [`call ${call}`]), ...(exchange === null ? [] : [`exchange ${exchange}`])];
}

/** The findings on the call of a row, in a column that is as wide as they are. */
export function CallMarks({ findings }: { findings: readonly Finding[] }) {
  return (
    <span className={styles["whole"]}>
      <FindingMarks findings={findings} reachable={false} />
    </span>
  );
}

/** When an entry was recorded, which leads to it. */
export function EntryTime({ entry: { seq, at } }: { entry: { seq: number | string; at: number } }) {
  return (
    <Link href={traceHref({ at: seq })} className={styles["moment"] ?? ""}>
      <Time at={at} />
    </Link>
  );
}

/** What stands where verdicts would while the server does not judge, and how to change that. */
export function JudgeOff() {
  return (
    <p>
      Judging is off: this server was started with <code>--no-judge</code>, so no rule was checked.
    </p>
  );
}
