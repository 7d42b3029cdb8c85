import type { ExchangeRow, FeedGap } from "~/protocol/schema";
import { type Gap, isAnswer, isMessage, type Kept, type Span, type Viewed } from "./entry";

/** A list in the order of a number that each item has to itself. Most items come at its end. */
class Sorted<Item> {
  #items: Item[] = [];
  #copy: readonly Item[] = [];
  readonly #numberOf: (item: Item) => number;

  constructor(numberOf: (item: Item) => number) {
    this.#numberOf = numberOf;
  }

  /** Adds an item, or puts it in the place of the one with its number. */
  put(item: Item): void {
    const number = this.#numberOf(item);
    const last = this.#items.at(-1);
    const at = last === undefined || this.#numberOf(last) < number ? this.#items.length : indexOf(this.#items, number, this.#numberOf);
    const there = this.#items[at];
    const same = there !== undefined && this.#numberOf(there) === number;
    if (at === this.#items.length) this.#items.push(item);
    else this.#items.splice(at, same ? 1 : 0, item);
    this.#copy = NONE;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Keeps those that pass, and gives the others. */
  keep(passes: (item: Item) => boolean): readonly Item[] {
    const gone: Item[] = [];
    this.#items = this.#items.filter((item) => passes(item) || (gone.push(item), false));
    if (gone.length > 0) this.#copy = NONE;
    return gone;
  }

  /** The item at a place, from 0. */
  at(place: number): Item | undefined {
    return this.#items.at(place);
  }

  /** All of them in their order: the same list until something changes. */
  get all(): readonly Item[] {
    if (this.#copy.length !== this.#items.length) this.#copy = this.#items.slice();
    return this.#copy;
  }
}

const NONE: readonly never[] = [];

/** The place of the first item whose number is not smaller. */
function indexOf<Item>(items: readonly Item[], number: number, numberOf: (item: Item) => number): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle];
    if (item !== undefined && numberOf(item) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** As many entries are kept, the newest; lists of this length still filter within a frame. */
export const MOST = 30_000;
// so many are thrown away at once, as each time all that is kept has to be looked at
const PIECE = 3_000;

/** What is known of one run of the server, all of one moment. */
export interface RunView {
  run: string;
  /** From this entry on all are here, but for the `gaps`; older ones are here where a search found them. Null before the first. */
  first: number | null;
  entries: readonly Kept[];
  spans: readonly Span[];
  gaps: readonly Gap[];
  /** The clients that entries name, by their labels. */
  clients: ReadonlyMap<string, Client>;
}

/** A client as the entry tells that opened its session, or noted its first request. */
interface Client {
  client_name: string;
  client_version: string;
  revision: string;
  era: "legacy" | "modern";
}

/** What a filter line is searched for by: a line for each exchange, or for each entry. */
export type By = "exchange" | "entry";

/** What passes the filter line, as the server says. It is another object when anything of it changes. */
interface Passing {
  line: string;
  /** The keys of spans. */
  spans: ReadonlySet<string>;
  /** `RUN-SEQ`. */
  entries: ReadonlySet<string>;
  /** What was searched for: without that, only what came since is known to pass. */
  searched: ReadonlySet<By>;
}

/** All that the page knows of the log. It changes by being replaced. */
export interface TraceView {
  /** The oldest first; the last one is the server's present life. */
  runs: readonly RunView[];
  passing: Passing;
  /** How many entries the feed ever brought. */
  total: number;
  /** How many parts of the log were loaded. */
  added: number;
}

const spanKey = (run: string, exchange: number) => `${run}-x${exchange}`;
const entryKey = (run: string, seq: number) => `${run}-${seq}`;

/** A part of the log with the rows of its exchanges, as pages of the API give it. */
export interface Part {
  events: readonly Viewed[];
  exchanges: readonly ExchangeRow[];
}

/** The one store of entries and exchanges, by their numbers, for each run that the page has seen. */
export class Trace {
  #runs: Run[] = [];
  #passing = nothing("");
  #shown: Passing = this.#passing;
  #total = 0;
  #added = 0;
  #view: TraceView | null = null;

  /** The present run; what is told of another one is of a life of the server that is over. */
  begin(run: string, behind: number | null): void {
    if (this.#runs.at(-1)?.run !== run) this.#runs.push(new Run(run));
    const now = this.#runs.at(-1);
    if (now !== undefined && behind !== null) now.first ??= behind + 1;
    this.#view = null;
  }

  /** Entries of the present run in their order, of which none is left out. */
  follow(entry: Viewed): void {
    const run = this.#runs.at(-1);
    if (run === undefined) return;
    run.first ??= entry.seq;
    if (!run.entries.has(entry.seq)) this.#total += 1;
    run.put(entry);
    this.#mark(entry.view.passes, this.#passing.entries, entryKey(run.run, entry.seq));
    if (run.size > MOST + PIECE) run.shorten(MOST);
    this.#view = null;
  }

  /** Rows of exchanges of the present run. */
  rows(rows: readonly ExchangeRow[]): void {
    const run = this.#runs.at(-1);
    for (const row of rows) {
      run?.row(row);
      this.#mark(row.passes, this.#passing.spans, spanKey(run?.run ?? "", row.exchange));
    }
    this.#view = null;
  }

  /** What the feed leaves out. */
  gap(gap: FeedGap): void {
    const run = this.#runs.at(-1);
    if (run === undefined) return;
    run.gaps = [...run.gaps, { ...gap, key: `${run.run}-gap-${this.#total}-${gap.first}`, run: run.run }];
    if (gap.last !== null) run.first ??= gap.last + 1;
    this.#view = null;
  }

  /** A part of a run; with `from`, all entries from there up to the oldest of those that follow are in it. */
  add(name: string, part: Part, from: number | null = null): void {
    const run = this.#runs.find((each) => each.run === name);
    if (run === undefined) return;
    for (const row of part.exchanges) run.row(row);
    for (const entry of part.events) run.put(entry);
    if (from !== null) run.first = from;
    this.#added += 1;
    this.#view = null;
  }

  /** Entries that a gap named are here now: those up to `until`, or all where that is behind its end. */
  fill(key: string, until: number): void {
    for (const run of this.#runs) {
      run.gaps = run.gaps.flatMap((gap) => {
        if (gap.key !== key || gap.last === null) return [gap];
        return until >= gap.last ? [] : [{ ...gap, first: until + 1 }];
      });
    }
    this.#view = null;
  }

  /** Begins with another filter line; what searches for others found is forgotten. */
  filter(line: string): void {
    this.#passing = this.#shown = nothing(line);
    for (const run of this.#runs) run.forgetFound();
    this.#view = null;
  }

  /** What a search for the present line found: spans by their exchanges, or entries by their numbers. */
  found(run: string, by: By, numbers: Iterable<number>): void {
    const [marks, keyOf] = by === "exchange" ? [this.#passing.spans, spanKey] : [this.#passing.entries, entryKey];
    for (const number of numbers) marks.add(keyOf(run, number));
    // another set: a view that is paused keeps the one that it has
    this.#passing.searched = new Set([...this.#passing.searched, by]);
    this.#shown = { ...this.#passing };
    this.#view = null;
  }

  readonly entryOf = (run: string, seq: number): Viewed | undefined => this.#of(run)?.entries.get(seq);

  readonly spanOf = (run: string, exchange: number): Span | undefined => this.#of(run)?.spanOf(exchange);

  /** The entries of an exchange, and those of a call in whatever exchange, in their order, as far as they are here. */
  readonly entriesOf = (run: string, exchange: number, call: string | null = null): readonly Viewed[] => this.#of(run)?.entriesOf(exchange, call) ?? [];

  /** The answer to a request. */
  readonly answerOf = (run: string, { seq }: Viewed): Viewed | undefined => this.#of(run)?.answerTo(seq);

  /** The request that an entry answers; what answers no open question was caused by what brought it. */
  readonly requestOf = (run: string, entry: Viewed): Viewed | undefined => {
    const cause = isAnswer(entry) && entry.cause !== null ? this.entryOf(run, entry.cause) : undefined;
    return cause !== undefined && isMessage(cause) ? cause : undefined;
  };

  #of(run: string): Run | undefined {
    return this.#runs.findLast((each) => each.run === run);
  }

  view(): TraceView {
    this.#view ??= { runs: this.#runs.map((run) => run.view()), passing: this.#shown, total: this.#total, added: this.#added };
    return this.#view;
  }

  #mark(passes: boolean | null, marks: Set<string>, key: string): void {
    if (passes === null || passes === marks.has(key)) return;
    if (passes) marks.add(key);
    else marks.delete(key);
    this.#shown = { ...this.#passing };
  }
}

const nothing = (line: string) => ({ line, spans: new Set<string>(), entries: new Set<string>(), searched: new Set<By>() as ReadonlySet<By> });

class Run {
  readonly run: string;
  readonly entries = new Map<number, Viewed>();
  first: number | null = null;
  gaps: readonly Gap[] = [];
  readonly #clients = new Map<string, Client>();
  readonly #order = new Sorted<Kept>(({ entry }) => entry.seq);
  readonly #spans = new Sorted<Span>(({ row }) => row.began.seq);
  readonly #rows = new Map<number, Span>();
  // the entries of each exchange, and of each call
  #exchanges = new Map<number, Sorted<Viewed>>();
  #calls = new Map<string, Sorted<Viewed>>();
  // the answer to each request, which may be in another exchange: a client answers in one of its own
  readonly #answers = new Map<number, number>();
  // the spans whose head or answer is still to come, by the number of that entry
  readonly #waiting = new Map<number, number>();
  #zero: number | null = null;

  constructor(run: string) {
    this.run = run;
  }

  get size(): number {
    return this.#order.size;
  }

  put(entry: Viewed): void {
    this.#zero ??= entry.at - entry.mono;
    this.#store(entry);
    if ((entry.kind === "session.opened" || entry.kind === "client.seen") && entry.session !== null) {
      const { client_name, client_version, revision, kind } = entry;
      this.#clients.set(entry.session, { client_name, client_version, revision, era: kind === "client.seen" ? "modern" : "legacy" });
    }
    const { delivers } = entry.view;
    for (const seq of delivers) {
      const sent = this.entries.get(seq);
      const moment = { seq: entry.seq, at: entry.at, mono: entry.mono };
      if (sent !== undefined && sent.view.delivered === null) this.#store({ ...sent, view: { ...sent.view, delivered: moment } });
    }
    const exchange = this.#waiting.get(entry.seq);
    if (exchange !== undefined) {
      this.#waiting.delete(entry.seq);
      const span = this.#rows.get(exchange);
      if (span !== undefined) this.row(span.row);
    }
  }

  #store(entry: Viewed): void {
    this.entries.set(entry.seq, entry);
    this.#order.put({ key: entryKey(this.run, entry.seq), run: this.run, entry });
    listOf(this.#exchanges, entry.view.exchange).put(entry);
    if (entry.call !== null) listOf(this.#calls, entry.call).put(entry);
    if (entry.cause !== null && isAnswer(entry)) this.#answers.set(entry.cause, entry.seq);
  }

  row(row: ExchangeRow): void {
    this.#zero ??= row.began.at - row.began.mono;
    const zero = this.#zero;
    const [head, answer] = [row.head, row.answer].map((seq) => (seq === null ? null : (this.entries.get(seq) ?? this.#await(seq, row.exchange))));
    const ends = [row.ended, ...(row.work === null ? [] : [row.work.ended])];
    const until = ends.includes(null) ? null : Math.max(...ends.map((end) => (end?.mono ?? 0) + zero));
    const span: Span = { key: spanKey(this.run, row.exchange), run: this.run, row, head: head ?? null, answer: answer ?? null, from: row.began.mono + zero, until };
    this.#rows.set(row.exchange, span);
    // the others have lines of their own in no list
    if (row.on_wire) this.#spans.put(span);
  }

  #await(seq: number, exchange: number): null {
    this.#waiting.set(seq, exchange);
    return null;
  }

  answerTo(request: number): Viewed | undefined {
    const seq = this.#answers.get(request);
    return seq === undefined ? undefined : this.entries.get(seq);
  }

  spanOf(exchange: number): Span | undefined {
    return this.#rows.get(exchange);
  }

  entriesOf(exchange: number, call: string | null): readonly Viewed[] {
    const own = this.#exchanges.get(exchange)?.all ?? [];
    const others = call === null ? [] : (this.#calls.get(call)?.all.filter(({ view }) => view.exchange !== exchange) ?? []);
    return others.length === 0 ? own : [...own, ...others].toSorted((a, b) => a.seq - b.seq);
  }

  /** Lets the oldest entries go. */
  shorten(most: number): void {
    const first = this.#order.at(-most)?.entry.seq ?? 0;
    this.first = Math.max(this.first ?? 0, first);
    this.gaps = this.gaps.filter((gap) => (gap.last ?? Number.POSITIVE_INFINITY) >= first);
    this.#forget(({ seq }) => seq >= first);
  }

  /** Lets go of what lies before the entry from which on all are here. */
  forgetFound(): void {
    const first = this.first ?? 0;
    this.#forget(({ seq }) => seq >= first);
  }

  #forget(stays: (entry: Viewed) => boolean): void {
    for (const { entry } of this.#order.keep(({ entry: each }) => stays(each))) this.entries.delete(entry.seq);
    this.#exchanges = this.#kept(this.#exchanges, stays);
    this.#calls = this.#kept(this.#calls, stays);
    for (const [request, seq] of this.#answers) if (!this.entries.has(seq)) this.#answers.delete(request);
    const first = this.first ?? 0;
    for (const [exchange, span] of this.#rows) if (!reaches(span, first)) this.#rows.delete(exchange);
    this.#spans.keep((span) => reaches(span, first));
    for (const seq of this.#waiting.keys()) if (seq < first) this.#waiting.delete(seq);
  }

  #kept<Key>(lists: Map<Key, Sorted<Viewed>>, stays: (entry: Viewed) => boolean): Map<Key, Sorted<Viewed>> {
    for (const [key, list] of lists) {
      list.keep(stays);
      if (list.size === 0) lists.delete(key);
    }
    return lists;
  }

  view(): RunView {
    return { run: this.run, first: this.first, entries: this.#order.all, spans: this.#spans.all, gaps: this.gaps, clients: this.#clients };
  }
}

function listOf<Key>(lists: Map<Key, Sorted<Viewed>>, key: Key): Sorted<Viewed> {
  const before = lists.get(key);
  if (before !== undefined) return before;
  const list = new Sorted<Viewed>(({ seq }) => seq);
  lists.set(key, list);
  return list;
}

/** Whether a span has not ended before an entry. */
export function reaches({ row, until }: Span, first: number): boolean {
  return until === null || Math.max(row.began.seq, row.ended?.seq ?? 0, row.work?.ended?.seq ?? 0) >= first;
}
