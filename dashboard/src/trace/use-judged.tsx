import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, createContext, use, useEffect, useMemo } from "react";
import { get } from "~/protocol/client";
import type { JudgeReport, JudgedSubject } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import { useServer } from "~/protocol/use-server";
import { type Finding, byEntry, findingsOf } from "./findings";
import { useFeed } from "./use-feed";

/** Of all clients, what the judge of the current run has found. */
export interface Judged {
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
