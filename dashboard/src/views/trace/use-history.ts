import { useCallback, useMemo, useState } from "react";
import { get } from "~/protocol/client";
import type { Entry, EventPage } from "~/protocol/schema";
import type { Fetched } from "./merge";

// What one press of a button asks for, and how much of it all a page keeps.
const PAGE = 500;
const AT_ONCE = 2_000;
const MOST = 20_000;

export interface History {
  fetched: Fetched;
  /** What is being loaded: `older`, or the key of a gap. */
  busy: string | null;
  error: string | null;
  /** Why there is nothing older to load, as far as that is known. */
  end: "beginning" | "evicted" | "enough" | null;
  loadOlder: (before: number) => void;
  loadGap: (key: string, first: number, last: number) => void;
  forget: () => void;
}

interface Loaded extends Fetched {
  end: History["end"];
}

/** Entries of `run` that the feed does not bring: older ones, and those that it skipped. */
export function useHistory(run: string): History {
  const [loaded, setLoaded] = useState<Loaded>(() => nothing(run));
  const [busy, setBusy] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const current = useMemo(() => (loaded.run === run ? loaded : nothing(run)), [loaded, run]);
  const load = useCallback(
    async (what: string, ask: (run: string) => Promise<Partial<Loaded>>) => {
      setBusy(what);
      setError(null);
      try {
        const more = await ask(run);
        setLoaded((before) => join(before.run === run ? before : nothing(run), more));
      } catch (problem) {
        setError(problem instanceof Error ? problem.message : String(problem));
      } finally {
        setBusy(null);
      }
    },
    [run],
  );
  const loadOlder = useCallback((before: number) => void load("older", (of) => older(of, before)), [load]);
  const loadGap = useCallback((key: string, first: number, last: number) => void load(key, (of) => between(of, first, last)), [load]);
  const forget = useCallback(() => setLoaded(nothing(run)), [run]);
  return useMemo(() => ({ fetched: current, busy, error, end: current.end, loadOlder, loadGap, forget }), [current, busy, error, loadOlder, loadGap, forget]);
}

function nothing(run: string): Loaded {
  return { run, entries: [], evicted: 0, end: null };
}

/** Adds what came, in order and once. */
function join(before: Loaded, more: Partial<Loaded>): Loaded {
  const bySeq = new Map([...before.entries, ...(more.entries ?? [])].map((entry) => [entry.seq, entry]));
  const entries = [...bySeq.values()].toSorted((a, b) => a.seq - b.seq);
  const end = more.end ?? before.end;
  return {
    run: before.run,
    entries: entries.slice(-MOST),
    evicted: Math.max(before.evicted, more.evicted ?? 0),
    end: entries.length >= MOST ? "enough" : end,
  };
}

async function page(run: string, query: Record<string, number>): Promise<EventPage> {
  const answer = await get<EventPage>("/events", { ...query, limit: PAGE });
  if (answer.run !== run) throw new Error("the server has restarted; what is missing here was lost with its earlier run");
  return answer;
}

async function older(run: string, before: number): Promise<Partial<Loaded>> {
  const answer = await page(run, { before });
  const evicted = answer.gap?.last ?? 0;
  const end = answer.next !== null ? null : evicted > 0 ? "evicted" : "beginning";
  return { entries: answer.events, evicted, end };
}

async function between(run: string, first: number, last: number): Promise<Partial<Loaded>> {
  const entries: Entry[] = [];
  let evicted = 0;
  let since = first - 1;
  while (since < last && entries.length < AT_ONCE) {
    const answer = await page(run, { since });
    entries.push(...answer.events.filter((entry) => entry.seq <= last));
    evicted = Math.max(evicted, answer.gap?.last ?? 0);
    // a page that leads nowhere would be asked for again for ever
    if (answer.next === null || answer.next <= since) break;
    since = answer.next;
  }
  return { entries, evicted };
}
