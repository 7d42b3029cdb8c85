import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, use, useEffect, useMemo } from "react";
import { get, useRefresh, useServer } from "~/protocol/client";
import type { JudgedRule, JudgedSubject, JudgeReport } from "~/protocol/schema";
import { useFeed } from "./feed";

export type Verdict = JudgedRule["verdict"];

/** From the worst on, with the word by which each is counted, the sign before it, and how it looks: what was not observed is never green. */
export const VERDICTS: readonly (readonly [Verdict, Looks])[] = [
  ["FAIL", { word: "failed", sign: "✗", tone: "bad" }],
  ["WARN", { word: "warned", sign: "!", tone: "warn" }],
  ["INCONCLUSIVE", { word: "inconclusive", sign: "?", tone: "info" }],
  ["PASS", { word: "passed", sign: "✓", tone: "good" }],
  ["NOT_OBSERVED", { word: "not observed", sign: "·", tone: "neutral" }],
];

interface Looks {
  word: string;
  sign: string;
  tone: "bad" | "warn" | "info" | "good" | "neutral";
}

const LOOKS = new Map(VERDICTS);
const UNKNOWN: Looks = { word: "not observed", sign: "·", tone: "neutral" };

export function looksOf(verdict: Verdict): Looks {
  return LOOKS.get(verdict) ?? UNKNOWN;
}

/** `5 failed, 2 warned, 27 passed, 68 not observed`: only what there is, but what was not observed always. */
export function headlineOf({ summary }: Pick<JudgedSubject, "summary">): string {
  return VERDICTS.map(([verdict, { word }]) => ({ verdict, word, count: summary[verdict] ?? 0 }))
    .filter(({ verdict, count }) => count > 0 || verdict === "NOT_OBSERVED")
    .map(({ word, count }) => `${count} ${word}`)
    .join(", ");
}

/** A rule that a client broke, where one thing is shown that it rests on. */
export interface Finding {
  client: string;
  rule: JudgedRule;
}

/** Whether a rule was broken: what is inconclusive, passed or not observed is no finding. */
export function isFinding({ verdict }: Pick<JudgedRule, "verdict">): boolean {
  return verdict === "FAIL" || verdict === "WARN";
}

/** All findings of a report. */
export function findingsOf({ subjects }: Pick<JudgeReport, "subjects">): readonly Finding[] {
  return subjects.flatMap((subject) => subject.verdicts.filter(isFinding).map((rule) => ({ client: subject.label, rule })));
}

/** What is wrong where a rule was broken; the rule itself of a report whose catalogue has no words for that. */
export function faultOf({ fault, title }: Pick<JudgedRule, "fault" | "title">): string {
  return fault || title;
}

/** The findings by the numbers of the entries that break the rules. Entries that only show a breach, such as the first request with an id that was used twice, have no mark. */
export function byEntry(findings: readonly Finding[]): ReadonlyMap<number, readonly Finding[]> {
  const found = new Map<number, Finding[]>();
  for (const finding of findings) {
    for (const seq of finding.rule.breaches) found.set(seq, [...(found.get(seq) ?? []), finding]);
  }
  return found;
}

/** What makes a finding another one: a client, a rule and how bad it is. How often it came does not. */
export function keyOf({ client, rule }: Finding): string {
  return `${client} ${rule.rule} ${rule.verdict}`;
}

/** The page of a client, at one of its rules where one is given. `client` is a name that the judge has, or the label of a session. */
export function clientHref(client: string, rule?: string): string {
  return `/clients/${encodeURIComponent(client)}${rule === undefined ? "" : `#${rule}`}`;
}

/** Of all clients, what the judge of the current run has found. */
interface Judged {
  /** `waiting` until the server has said whether it judges. */
  state: "waiting" | "off" | "on";
  run: string;
  /** Each with its findings only; the counts are of all rules. */
  subjects: readonly JudgedSubject[];
  /** False until the first answer. */
  answered: boolean;
  findings: readonly Finding[];
  byEntry: ReadonlyMap<number, readonly Finding[]>;
  error: Error | null;
}

const NOTHING: Judged = { state: "waiting", run: "", subjects: [], answered: false, findings: [], byEntry: new Map(), error: null };

export const JudgedContext = createContext<Judged>(NOTHING);

export function useJudged(): Judged {
  return use(JudgedContext);
}

/** At most one question a second, and only when the log has grown. */
export const PACE = 1_000;
// verdicts that wait for a time come without an entry; while nobody looks, only the title of the page needs them
const IDLE = 5_000;
const HIDDEN = 30_000;

/** How long until the judge is asked again although the log has not grown. */
export const idle = () => (document.hidden ? HIDDEN : IDLE);

/** How far the log has grown, as the feed tells it. */
export function useLogEnd(): number {
  return useFeed(({ tables }) => tables.counts[0]?.last ?? 0);
}

/** Whether the server judges, by its settings: to ask a server for verdicts that it does not have is an error on the page. */
function useJudging(run: string | undefined): Judged["state"] {
  const { data } = useServer();
  const queries = useQueryClient();
  const unknown = run !== undefined && data !== undefined && data.run !== run ? run : "";
  useEffect(() => {
    if (unknown !== "") void queries.invalidateQueries({ queryKey: ["server"] });
  }, [queries, unknown]);
  // what an earlier run was set to says nothing of this one
  if (data === undefined || run === undefined || unknown !== "") return "waiting";
  return data.settings.some(({ name, value }) => name === "judge" && value === true) ? "on" : "off";
}

/** Keeps the findings on all clients for the pages inside. */
export function JudgedProvider({ children }: { children: ReactNode }) {
  const run = useFeed(({ hello }) => hello?.run);
  const state = useJudging(run);
  useRefresh(["findings"], useLogEnd(), PACE);
  const { data, error } = useQuery({
    queryKey: ["findings", run],
    queryFn: ({ signal }) => get<JudgeReport>("/judge", { verdict: "FAIL,WARN" }, signal),
    enabled: state === "on",
    refetchInterval: idle,
    refetchIntervalInBackground: true,
  });
  const judged = useMemo((): Judged => {
    const findings = data === undefined ? [] : findingsOf(data);
    return { state, run: run ?? "", subjects: data?.subjects ?? [], answered: data !== undefined, findings, byEntry: byEntry(findings), error };
  }, [state, run, data, error]);
  return <JudgedContext value={judged}>{children}</JudgedContext>;
}
