import type { Direction } from "~/api/evidence";
import type { Entry } from "~/api/schema";
import { GROUPS, type Group, bit, contains, factsOf } from "./facts";
import type { Line } from "./merge";
import type { Relations } from "./relations";

/** What belongs together, for links such as `?call=c7`: ids of the server, and the label that a client was given. */
export const TOPICS = ["label", "call", "task", "exchange", "stream", "connection"] as const;
export type Topic = (typeof TOPICS)[number];

export interface Filters {
  /** The label, of an earlier run `RUN/label`. */
  session: string;
  direction: string;
  groups: readonly Group[];
  method: string;
  text: string;
  topics: readonly (readonly [Topic, string])[];
  /** Deliveries are told in the row of their message. */
  fold: boolean;
}

/** The filters that an URL says. */
export function filtersOf(params: URLSearchParams): Filters {
  const groups = (params.get("show") ?? "").split(",");
  return {
    session: params.get("session") ?? "",
    direction: params.get("direction") ?? "",
    groups: GROUPS.filter((group) => groups.includes(group)),
    method: params.get("method") ?? "",
    text: params.get("text") ?? "",
    topics: TOPICS.flatMap((topic) => params.getAll(topic).map((value) => [topic, value] as const)),
    fold: params.get("deliveries") !== "rows",
  };
}

export interface Counts {
  direction: Record<Direction, number>;
  groups: Record<Group, number>;
  sessions: Map<string, number>;
  methods: Map<string, number>;
  /** Deliveries that have no row of their own. */
  folded: number;
  entries: number;
}

export interface Filtered {
  /** Newest first, with the gaps in their places. */
  lines: readonly Line[];
  /** What choosing each value would show, with the other filters as they are. */
  counts: Counts;
}

// one bit for each filter that an entry fails
const SESSION = 1;
const DIRECTION = 2;
const GROUP = 4;
const METHOD = 8;
const OTHER = 16;

/** The lines that pass, and the counts of each choice. */
export function filter(all: readonly Line[], runs: ReadonlyMap<string, Relations>, newest: string, filters: Filters): Filtered {
  const counts = noCounts();
  const lines: Line[] = [];
  const wanted = filters.groups.reduce((bits, group) => bits | bit(group), 0);
  const text = filters.text.toLowerCase();
  for (let index = all.length - 1; index >= 0; index -= 1) {
    const line = all[index];
    if (line === undefined) continue;
    if (line.type === "gap") {
      lines.push(line);
      continue;
    }
    const relations = runs.get(line.run);
    const { entry } = line;
    if (relations === undefined) continue;
    const facts = factsOf(entry);
    const method = relations.methodOf(entry);
    const session = sessionKey(entry.session, line.run, newest);
    let failed = 0;
    if (filters.session !== "" && session !== filters.session) failed |= SESSION;
    if (filters.direction !== "" && facts.direction !== filters.direction) failed |= DIRECTION;
    if (wanted !== 0 && (facts.groups & wanted) === 0) failed |= GROUP;
    if (filters.method !== "" && method !== filters.method) failed |= METHOD;
    if (!onTopic(entry, filters.topics) || (text !== "" && !contains(entry, text))) failed |= OTHER;
    if (filters.fold && entry.kind === "message.delivered" && relations.folds(entry)) {
      if (failed === 0) counts.folded += 1;
      continue;
    }
    if (failed === 0) lines.push(line);
    count(counts, failed, facts, session, method);
  }
  return { lines, counts };
}

function noCounts(): Counts {
  const groups = Object.fromEntries(GROUPS.map((group) => [group, 0])) as Record<Group, number>;
  return { direction: { in: 0, out: 0 }, groups, sessions: new Map(), methods: new Map(), folded: 0, entries: 0 };
}

/** An entry counts for the values of a filter when it passes all the others. */
function count(counts: Counts, failed: number, facts: ReturnType<typeof factsOf>, session: string | null, method: string | null): void {
  if (failed === 0) counts.entries += 1;
  if ((failed & ~DIRECTION) === 0 && facts.direction !== null) counts.direction[facts.direction] += 1;
  if ((failed & ~GROUP) === 0) {
    for (let index = 0; index < GROUPS.length; index += 1) {
      const group = GROUPS[index];
      if (group !== undefined && (facts.groups & (1 << index)) !== 0) counts.groups[group] += 1;
    }
  }
  if ((failed & ~SESSION) === 0 && session !== null) counts.sessions.set(session, (counts.sessions.get(session) ?? 0) + 1);
  if ((failed & ~METHOD) === 0 && method !== null) counts.methods.set(method, (counts.methods.get(method) ?? 0) + 1);
}

/** A label means somebody else in each run. */
function sessionKey(session: string | null, run: string, newest: string): string | null {
  return session === null || run === newest ? session : `${run}/${session}`;
}

function onTopic(entry: Entry, topics: Filters["topics"]): boolean {
  return topics.every(([topic, value]) => topicOf(entry, topic) === value);
}

/** What an entry belongs to, as a link names it; null for nothing. The id of a stream is unique within its session only. */
export function topicOf(entry: Entry, topic: Topic): string | null {
  const mine = entry[topic];
  if (mine === null) return null;
  return topic === "stream" ? `${entry.session}/${mine}` : String(mine);
}
