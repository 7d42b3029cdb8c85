import { useEffect, useRef, useState } from "react";
import type { JudgedRule } from "~/protocol/schema";

/** How long a rule is marked that was decided just now, in milliseconds. */
export const MARKED = 5_000;

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
