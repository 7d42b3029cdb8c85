import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { get } from "~/protocol/client";
import type { JudgedRule, JudgeReport, RuleInfo, RuleList } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import { idle, PACE, useJudged, useLogEnd } from "~/trace/use-judged";

/** The whole report on one client, asked for again while the client works and the page is in view. */
export function useReport(client: string) {
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
export function useRules() {
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
export function useFresh(verdicts: readonly JudgedRule[]): ReadonlySet<string> {
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
