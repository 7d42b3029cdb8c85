import { createContext, use, useSyncExternalStore } from "react";
import { DASHBOARD } from "~/protocol/client";
import { parseJson } from "~/protocol/json";
import type { FeedGap, FeedHello, FeedRows } from "~/protocol/schema";
import { type Rows, type Table, TABLES, type Viewed } from "./entry";
import { Trace, type TraceView } from "./trace";

type Tables = { readonly [Name in Table]: readonly Rows[Name][] };

/** What the page shows, all of one moment. It changes by being replaced, so that parts can be compared by identity. */
export interface Snapshot {
  /** `connecting` for the first time, `live`, `stale`: lost and trying again, `closed`: refused, tried again later. */
  status: "connecting" | "live" | "stale" | "closed";
  /** Entries and exchanges of the log. */
  trace: TraceView;
  /** The newest life of the server that is known. */
  hello: FeedHello | null;
  tables: Tables;
}

/** What of the browser the feed needs; tests bring their own. */
interface Surroundings {
  open: (url: string) => EventSource;
  /** Calls back once, with the next picture. */
  nextFrame: (callback: () => void) => void;
  after: (ms: number, callback: () => void) => () => void;
}

const BROWSER: Surroundings = {
  open: (url) => new EventSource(url),
  nextFrame: (callback) => {
    requestAnimationFrame(callback);
  },
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

// more rows than the server keeps of any table by default
const ROWS = 2_000;
const TAIL = 500;
// after a refusal the browser gives up; these are our own attempts, in milliseconds
const FIRST_RETRY = 1_000;
const LAST_RETRY = 15_000;

type Maps = { readonly [Name in Table]: Map<string, Rows[Name]> };

function forEachTable<All extends { readonly [Name in Table]: unknown }>(make: <Name extends Table>(table: Name) => All[Name]): All {
  return Object.fromEntries(TABLES.map((table) => [table, make(table)])) as All;
}

/** The number in an event id `RUN-SEQ`; null for none. */
function numberIn(id: string): number | null {
  const found = /-(\d+)$/.exec(id);
  return found === null ? null : Number(found[1]);
}

/**
 * The live view of the server: one EventSource, everything bounded, one new snapshot per frame at most.
 *
 * Nothing is opened before `start`, whose result closes it again; what was collected stays.
 */
export class Feed {
  /** Entries and exchanges of the log; whoever adds to them calls `changed`. */
  readonly trace = new Trace();
  readonly #around: Surroundings;
  readonly #listeners = new Set<() => void>();
  readonly #rows = forEachTable<Maps>(() => new Map());
  // tables whose next rows begin anew, and those that changed since the last snapshot
  readonly #stale = new Set<Table>();
  readonly #renewed = new Set<Table>();
  #snapshot: Snapshot = { status: "connecting", trace: this.trace.view(), hello: null, tables: forEachTable<Tables>(() => []) };
  #status: Snapshot["status"] = "connecting";
  #hello: FeedHello | null = null;
  // the id to resume behind, and the number in it: entries up to it are known
  #resume = "";
  #last = 0;
  #line = "";
  #framed = false;
  #source: EventSource | null = null;
  #retry = FIRST_RETRY;
  #cancelRetry: (() => void) | null = null;

  constructor(around: Surroundings = BROWSER) {
    this.#around = around;
  }

  readonly snapshot = (): Snapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Connects; the function it returns disconnects. */
  readonly start = (): (() => void) => {
    this.#open();
    return () => this.#close();
  };

  /**
   * Has the server say of the entries behind `since` and of their exchanges whether they pass a filter line, which it must
   * understand. An empty line asks nothing.
   */
  readonly filter = (line: string, since: number | null = null): void => {
    if (line === this.#line) return;
    this.#line = line;
    this.trace.filter(line);
    this.changed();
    if (since !== null && since < this.#last) {
      this.#last = since;
      this.#resume = `${this.#hello?.run}-${since}`;
    }
    if (this.#source === null) return;
    this.#close();
    this.#open();
  };

  /** The next frame has a new snapshot. */
  readonly changed = (): void => {
    if (this.#framed) return;
    this.#framed = true;
    this.#around.nextFrame(() => {
      this.#framed = false;
      this.#publish();
    });
  };

  #close(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    this.#source?.close();
    this.#source = null;
  }

  #open(): void {
    const query = new URLSearchParams({ tables: TABLES.join(","), tail: String(TAIL), view: "1" });
    if (this.#resume !== "") query.set("since", this.#resume);
    if (this.#line !== "") query.set("passes", this.#line);
    const source = this.#around.open(`${DASHBOARD}/events?${query}`);
    this.#source = source;
    source.addEventListener("hello", (event) => this.#onHello(parseJson(event.data) as FeedHello, event.lastEventId));
    source.addEventListener("message", (event) => this.#onEntry(parseJson(event.data) as Viewed, event.lastEventId));
    source.addEventListener("gap", (event) => this.#onGap(parseJson(event.data) as FeedGap, event.lastEventId));
    source.addEventListener("rows", (event) => this.#onRows(parseJson(event.data) as FeedRows));
    source.addEventListener("error", () => this.#onError(source));
  }

  #onHello(hello: FeedHello, id: string): void {
    const known = this.#hello?.run;
    if (known !== undefined && known !== hello.run) {
      this.#last = 0;
      for (const table of TABLES) this.#forget(table);
    }
    this.#hello = hello;
    this.#retry = FIRST_RETRY;
    for (const table of TABLES) this.#stale.add(table);
    this.trace.begin(hello.run, hello.resumed ? null : numberIn(id));
    this.#setStatus("live");
  }

  #onEntry(entry: Viewed, id: string): void {
    this.#resume = id;
    if (entry.seq <= this.#last) return;
    this.#last = entry.seq;
    this.trace.follow(entry);
    this.changed();
  }

  #onGap(gap: FeedGap, id: string): void {
    this.#resume = id;
    this.#last = Math.max(this.#last, gap.last ?? 0);
    this.trace.gap(gap);
    this.changed();
  }

  #onRows({ table, rows }: FeedRows): void {
    this.changed();
    if (table === "exchanges") return this.trace.rows(rows);
    // one of the tables, though not which: the map and the rows are of the same
    const known = this.#rows[table] as Map<string, Rows[Table]> | undefined;
    // a table of a server newer than this page
    if (known === undefined) return undefined;
    if (this.#stale.delete(table)) this.#forget(table);
    for (const row of rows) known.set(row.id, row);
    for (const id of known.keys()) {
      if (known.size <= ROWS) break;
      known.delete(id);
    }
    this.#renewed.add(table);
    return undefined;
  }

  #forget(table: Table): void {
    this.#rows[table].clear();
    this.#renewed.add(table);
  }

  #onError(source: EventSource): void {
    // a lost connection the browser takes up again by itself, with Last-Event-ID; a refused one it does not
    if (source.readyState !== source.CLOSED) {
      this.#setStatus(this.#hello === null ? "connecting" : "stale");
      return;
    }
    this.#setStatus("closed");
    this.#cancelRetry = this.#around.after(this.#retry, () => this.#open());
    this.#retry = Math.min(2 * this.#retry, LAST_RETRY);
  }

  #setStatus(status: Snapshot["status"]): void {
    this.#status = status;
    this.changed();
  }

  #publish(): void {
    const before = this.#snapshot;
    const rows = <Name extends Table>(table: Name) => (this.#renewed.has(table) ? ([...this.#rows[table].values()] as Tables[Name]) : before.tables[table]);
    this.#snapshot = {
      status: this.#status,
      trace: this.trace.view(),
      hello: this.#hello,
      tables: this.#renewed.size === 0 ? before.tables : forEachTable<Tables>(rows),
    };
    this.#renewed.clear();
    for (const listener of this.#listeners) listener();
  }
}

/** The one feed of the page; app.tsx provides it, tests provide their own. */
export const FeedContext = createContext<Feed | null>(null);

export function useTheFeed(): Feed {
  const feed = use(FeedContext);
  if (feed === null) throw new Error("there is no FeedContext around this component");
  return feed;
}

/**
 * A part of the feed's snapshot; renders again when that part is another one (by `Object.is`).
 *
 * `select` must return what is in the snapshot, or a primitive; derive lists from that with useMemo.
 */
export function useFeed<Part>(select: (snapshot: Snapshot) => Part): Part {
  const feed = useTheFeed();
  return useSyncExternalStore(feed.subscribe, () => select(feed.snapshot()));
}
