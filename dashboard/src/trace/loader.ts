import { get } from "~/protocol/client";
import type { EventPage, SearchPage } from "~/protocol/schema";
import type { Gap } from "./entry";
import type { Feed } from "./feed";
import { type By, MOST, type Part, type Trace } from "./trace";

// what one press of a button asks for
const PAGE = 500;
const AT_ONCE = 2_000;
// a search gives no more entries at once, and each looks at all of the log
const FOUND = 5_000;
// how far a search goes on by itself, in pages: as far as people read, or as far as repeats are counted
const BY_ITSELF = 2;
const FOR_REPEATS = 3;

export interface Search {
  line: string;
  by: By;
  /** Whether everything is to be found, to count what repeats. */
  whole: boolean;
}

export interface Loading {
  /** What is searched for. */
  query: Search;
  /** What is on its way: `older`, `search`, or the key of a gap. */
  busy: string | null;
  error: string | null;
  /** Why there is nothing older to load, as far as that is known. */
  end: "beginning" | "evicted" | "enough" | null;
  /** What the search counted, in the log up to `last`; `next` leads to older ones. */
  found: { matched: number; total: number; last: number; next: number | null } | null;
}

const IDLE: Loading = { query: { line: "", by: "exchange", whole: false }, busy: null, error: null, end: null, found: null };

/** Brings what the feed does not: older entries, those that it skipped, and what passes a filter line anywhere in the log. */
export class Loader {
  readonly #feed: Feed;
  readonly #listeners = new Set<() => void>();
  #state = IDLE;
  #gone = new AbortController();

  constructor(feed: Feed) {
    this.#feed = feed;
  }

  get trace(): Trace {
    return this.#feed.trace;
  }

  readonly state = (): Loading => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #say(more: Partial<Loading>): void {
    this.#state = { ...this.#state, ...more };
    this.#feed.changed();
    for (const listener of this.#listeners) listener();
  }

  /** Ends what is on its way. */
  readonly stop = (): void => this.#gone.abort();

  /** Looks for what passes a line in a run of the server, and has the feed mark what comes then. */
  readonly find = (run: string, query: Search): void => {
    this.#gone.abort();
    this.#gone = new AbortController();
    this.#say({ ...IDLE, query });
    if (query.line === "") return this.#feed.filter("");
    return void this.#load("search", async (signal) => {
      for (let pages = 0; pages < (query.whole ? FOR_REPEATS : BY_ITSELF) && (pages === 0 || this.#state.found?.next != null); pages += 1) {
        await this.#search(run, pages === 0 ? null : (this.#state.found?.next ?? null), signal);
      }
    });
  };

  /** Searches again, where that failed. */
  readonly again = (run: string): void => this.find(run, this.#state.query);

  /** Looks further back. */
  readonly more = (run: string): void => void this.#load("search", (signal) => this.#search(run, this.#state.found?.next ?? null, signal));

  async #search(run: string, before: number | null, signal: AbortSignal): Promise<void> {
    const { line, by, whole } = this.#state.query;
    const page = await get<Omit<SearchPage, keyof Part> & Part>("/search", { filter: line, by, before, limit: whole ? FOUND : null, view: 1 }, signal);
    if (page.run !== run) throw new Error("the server has restarted");
    // what was added to the log since then comes again, with marks
    this.#feed.filter(line, page.last);
    this.#feed.trace.add(run, page);
    this.#feed.trace.found(run, by, page.events.map(({ seq, view }) => (by === "exchange" ? view.exchange : seq)));
    const { matched, total, last, next } = page;
    this.#say({ error: null, found: { matched, total, last, next: next === before ? null : next } });
  }

  /** The entries before the oldest from which on all are here. */
  readonly older = (run: string, first: number): void => {
    const held = this.#feed.trace.view().runs.find((each) => each.run === run)?.entries.length ?? 0;
    if (held >= MOST) return this.#say({ end: "enough" });
    return void this.#load("older", async (signal) => {
      const page = await this.#page(run, { before: first }, signal);
      const lost = page.gap?.last ?? 0;
      this.#feed.trace.add(run, page, page.next ?? lost + 1);
      this.#say({ end: page.next !== null ? null : lost > 0 ? "evicted" : "beginning" });
    });
  };

  /** The entries of a gap. */
  readonly fill = ({ key, run, first, last }: Gap): void =>
    void this.#load(key, async (signal) => {
      let since = (first ?? 1) - 1;
      for (let loaded = 0; since < (last ?? 0) && loaded < AT_ONCE; loaded += PAGE) {
        const page = await this.#page(run, { since }, signal);
        this.#feed.trace.add(run, page);
        // a page that leads nowhere would be asked for again for ever
        if (page.next === null || page.next <= since) break;
        since = page.next;
        this.#feed.trace.fill(key, since);
      }
    });

  async #page(run: string, query: Record<string, number>, signal: AbortSignal): Promise<Omit<EventPage, keyof Part> & Part> {
    const page = await get<Omit<EventPage, keyof Part> & Part>("/events", { ...query, limit: PAGE, view: 1 }, signal);
    if (page.run !== run) throw new Error("the server has restarted; what is missing here was lost with its earlier run");
    return page;
  }

  async #load(busy: string, ask: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#gone;
    this.#say({ busy, error: null });
    try {
      await ask(signal);
      if (!signal.aborted) this.#say({ busy: null });
    } catch (problem) {
      if (!signal.aborted) this.#say({ busy: null, error: problem instanceof Error ? problem.message : String(problem) });
    }
  }
}
