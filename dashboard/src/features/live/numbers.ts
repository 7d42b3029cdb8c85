import type { Direction } from "~/api/evidence";
import type { CountsRow } from "~/api/schema";
import type { Group } from "./facts";
import type { Counts, Filters } from "./filters";
import type { Line } from "./merge";

/** The numbers of the toolbar, all counted over the same entries. */
export interface Numbers {
  groups: Readonly<Record<Group, number>>;
  /** Null where the server does not count it under the chosen filters; so for the next two. */
  direction: Readonly<Record<Direction, number>> | null;
  sessions: ReadonlyMap<string, number> | null;
  methods: ReadonlyMap<string, number> | null;
  /** Over which entries. */
  of: string;
}

/** How many of the lines are entries, and how many of these are of another run than `run`. */
export function loadedOf(lines: readonly Line[], run: string): { entries: number; others: number } {
  const entries = lines.filter((line) => line.type === "entry");
  return { entries: entries.length, others: entries.filter((line) => line.run !== run).length };
}

/** Whether entries are left out by something else than their group. */
export function isFiltered({ session, direction, method, text, topics }: Filters): boolean {
  return topics.length > 0 || [session, direction, method, text].some((each) => each !== "");
}

const number = (count: number) => count.toLocaleString("en");

/**
 * What the toolbar counts: all entries that the server keeps, by the page itself where it has loaded them all, else as the server
 * counts them. Under filters that the server does not count, it is the loaded ones.
 */
export function numbersOf(counts: Counts, kept: CountsRow | undefined, loaded: ReturnType<typeof loadedOf>, filters: Filters): Numbers {
  const own = { groups: counts.groups, direction: counts.direction, sessions: counts.sessions, methods: counts.methods };
  if (kept === undefined) return { ...own, of: `the ${number(loaded.entries)} loaded entries` };
  const all = `all ${number(kept.entries)} entries in the log`;
  if (loaded.others === 0 && loaded.entries >= kept.entries) return { ...own, of: all };
  if (isFiltered(filters)) return { ...own, of: `the ${number(loaded.entries)} loaded entries; the log has ${number(kept.entries)}` };
  const deliveries = filters.fold ? 0 : kept.deliveries;
  const direction = { in: kept.received, out: kept.sent + deliveries };
  return {
    groups: { ...kept, messages: kept.messages + deliveries },
    direction: filters.groups.length === 0 ? direction : null,
    sessions: null,
    methods: null,
    of: `${all}; ${number(loaded.entries)} are loaded`,
  };
}
