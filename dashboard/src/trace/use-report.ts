import { useQuery } from "@tanstack/react-query";
import { get } from "~/protocol/client";
import type { JudgeReport, RuleInfo, RuleList } from "~/protocol/schema";
import { useRefresh } from "~/protocol/use-refresh";
import { PACE, idle, useJudged, useLogEnd } from "./use-judged";

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
