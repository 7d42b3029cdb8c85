import { type UseQueryResult, useQueries } from "@tanstack/react-query";
import { createContext, use, useMemo } from "react";
import type { CallRow, Entry } from "~/protocol/schema";
import type { Finding } from "~/trace/findings";
import { entryQuery } from "~/trace/use-entry";
import { useJudged } from "~/trace/use-judged";
import { FindingMarks } from "./finding-mark";

type Call = Pick<CallRow, "run" | "call" | "exchange">;

// each is one small question, asked once; a client with more findings than this has them on its report
const ENTRIES = 200;

/** The findings that rest on a call: on an entry of it, or of the exchange that brought it. */
export function useCallFindings(): (call: Call) => readonly Finding[] {
  const { run, byEntry } = useJudged();
  const seqs = useMemo(() => [...byEntry.keys()].toSorted((a, b) => b - a).slice(0, ENTRIES), [byEntry]);
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

function loaded(results: UseQueryResult<Entry>[]): readonly Entry[] {
  return results.flatMap(({ data }) => data ?? []);
}

function placesOf({ call, exchange }: { call: string | null; exchange: number | null }): readonly string[] {
  return [...(call === null ? [] : [`call ${call}`]), ...(exchange === null ? [] : [`exchange ${exchange}`])];
}

export const CallFindingsContext = createContext<(call: Call) => readonly Finding[]>(() => []);

/** The findings on the call of a row. */
export function CallMarks({ call }: { call: Call }) {
  return <FindingMarks findings={use(CallFindingsContext)(call)} reachable={false} />;
}
