import { type Key, type Word, matcher } from "~/protocol/filter";
import { writeJson } from "~/protocol/json";
import type { Entry } from "~/protocol/schema";
import { directionOf } from "~/trace/evidence";
import { type Exchange, factsOf, isOnWire, remembering } from "./exchanges";
import type { Known } from "./known";
import { problemOf } from "./problems";

type Matched = readonly [word: Word, matches: (mine: string) => boolean];

/** What the words of a filter line want, of the exchanges and entries that the page has; the server says the same of all of them. */
export interface Wanted {
  /** Whether, for each word, an entry of the exchange has it, and none has what is not wanted. */
  exchange: (exchange: Exchange) => boolean;
  /** Whether the exchange of an entry has what is asked of that, for `entry` to be asked. */
  around: (exchange: Exchange) => boolean;
  entry: (entry: Entry, run: string) => boolean;
}

// what an exchange has as a whole
const OF_EXCHANGE = new Set<Key>(["client", "tool", "outcome", "status"]);

const textOf = remembering((entry: Entry) => writeJson(entry).toLowerCase());

/** The same as src/probe/views/search/search.py; tests of both read ~/testing/filter-log.json. */
export function wanted(words: readonly Word[], known: Known): Wanted {
  const all = words.map((word): Matched => [word, matcher(word)]);
  const outside = all.filter(([{ key }]) => OF_EXCHANGE.has(key));
  // a text last, as it has to be looked for in all that there is of an entry
  const inside = all.filter(([{ key }]) => !OF_EXCHANGE.has(key)).toSorted(([a], [b]) => Number(a.key === "text") - Number(b.key === "text"));
  const around = (exchange: Exchange) => outside.every(([word, matches]) => ofExchange(exchange, word.key, known).some((name) => matches(name)) !== word.negated);
  const has = (entry: Entry, run: string, [{ key }, matches]: Matched) => ofEntry(entry, run, key, known).some((name) => matches(name));
  return {
    around,
    entry: (entry, run) => inside.every((each) => has(entry, run, each) !== each[0].negated),
    exchange: (exchange) =>
      around(exchange) &&
      inside.every((each) => {
        const [{ key, negated }] = each;
        const { entries, run } = exchange;
        if (key === "kind" && negated) return entries.some((entry) => isOnWire(entry) && !has(entry, run, each));
        return entries.some((entry) => has(entry, run, each)) !== negated;
      }),
  };
}

/** Whom an exchange is about: of a stream that another client resumes it is two. */
const clientsOf = remembering(({ entries }: Exchange) => ({
  sessions: [...new Set(entries.flatMap(({ session }) => some(session)))],
  labels: [...new Set(entries.flatMap(({ label }) => some(label)))],
}));

const NONE: readonly string[] = [];
const some = (value: string | number | null | undefined): readonly string[] => (value === null || value === undefined ? NONE : [String(value)]);

function ofExchange(exchange: Exchange, key: Key, known: Known): readonly string[] {
  const { run, entries } = exchange;
  const { call, settled, response } = factsOf(exchange);
  switch (key) {
    case "client": {
      const { sessions, labels } = clientsOf(exchange);
      // the label of a session means somebody else in each run
      const shown = run === known.run ? sessions : sessions.map((session) => `${run}/${session}`);
      return [...labels, ...shown, ...sessions.flatMap((session) => some(known.client(run, session)?.name))];
    }
    case "tool":
      return call === null ? NONE : entries.flatMap((entry) => (entry.kind === "call.started" ? some(entry.tool) : []));
    case "outcome":
      return settled !== null ? entries.flatMap((entry) => (entry.kind === "call.settled" ? [entry.outcome] : [])) : call === null ? NONE : ["running"];
    default:
      return some(response?.status);
  }
}

function ofEntry(entry: Entry, run: string, key: Key, known: Known): readonly string[] {
  switch (key) {
    case "kind":
      return [entry.kind];
    case "text":
      return [textOf(entry)];
    case "method":
      return some(known.relations(run).methodOf(entry));
    case "direction":
      return some(directionOf(entry));
    case "problem": {
      const problem = problemOf(entry);
      return problem === null ? NONE : [problem, "any"];
    }
    case "stream":
      return entry.stream === null ? NONE : [entry.stream, `${entry.session}/${entry.stream}`];
    case "call":
    case "task":
    case "exchange":
    case "connection":
      return some(entry[key]);
    default:
      return NONE;
  }
}
