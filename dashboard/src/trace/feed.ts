import { DASHBOARD } from "~/protocol/address";
import { parseJson } from "~/protocol/json";
import type { Entry, FeedGap, FeedHello, FeedRows } from "~/protocol/schema";
import { type Item, type Rows, type Table, TABLES } from "./entry";

type Tables = { readonly [Name in Table]: readonly Rows[Name][] };

/** What the page shows, all of one moment. It changes by being replaced, so that parts can be compared by identity. */
export interface Snapshot {
  /** `connecting` for the first time, `live`, `stale`: lost and trying again, `closed`: refused, tried again later. */
  status: "connecting" | "live" | "stale" | "closed";
  /** The newest entries and gaps, oldest first. */
  items: readonly Item[];
  /** How many there were in all, those pushed out of `items` and those cleared from it too. */
  total: number;
  /** The newest life of the server that is known. */
  hello: FeedHello | null;
  /** Set while the server sends the entries of one session only: which, and behind what number those of others are missing. */
  narrowed: { session: string; after: number } | null;
  tables: Tables;
}

/** What of the browser the feed needs; tests bring their own. */
export interface Surroundings {
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

// enough to look back some minutes in a busy session; lists of this length still filter within a frame or two
const CAPACITY = 10_000;
// more rows than the server keeps of any table by default
const ROWS = 2_000;
const TAIL = 500;
// after a refusal the browser gives up; these are our own attempts, in milliseconds
const FIRST_RETRY = 1_000;
const LAST_RETRY = 15_000;

/** A place in the log, and how many items there had been when it was reached. */
interface Place {
  id: string;
  seq: number;
  total: number;
}

const NOWHERE: Place = { id: "", seq: 0, total: 0 };

type Maps = { readonly [Name in Table]: Map<string, Rows[Name]> };

function forEachTable<All extends { readonly [Name in Table]: unknown }>(make: <Name extends Table>(table: Name) => All[Name]): All {
  return Object.fromEntries(TABLES.map((table) => [table, make(table)])) as All;
}

/**
 * The live view of the server: one EventSource, everything bounded, one new snapshot per frame at most.
 *
 * Nothing is opened before `start`, whose result closes it again; what was collected stays.
 */
export class Feed {
  readonly #around: Surroundings;
  readonly #ring = new Ring(CAPACITY);
  readonly #listeners = new Set<() => void>();
  readonly #rows = forEachTable<Maps>(() => new Map());
  // tables whose next rows begin anew, and those that changed since the last snapshot
  readonly #stale = new Set<Table>();
  readonly #changed = new Set<Table>();
  #snapshot: Snapshot = { status: "connecting", items: [], total: 0, hello: null, narrowed: null, tables: forEachTable<Tables>(() => []) };
  #status: Snapshot["status"] = "connecting";
  #hello: FeedHello | null = null;
  // the id to resume behind, and the number in it: entries up to it are known
  #resume = "";
  #last = 0;
  // the client whose entries alone are sent, and the place up to which those of all others are known too
  #session: string | null = null;
  #whole: Place = NOWHERE;
  #framed = false;
  #cleared = false;
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

  /** Forgets the items shown so far; the rows of the tables stay. */
  readonly clear = (): void => {
    this.#ring.clear();
    this.#cleared = true;
    // or what was cleared would come again with the next change of the session
    this.#whole = this.#here();
    this.#publishSoon();
  };

  /**
   * Has the server send the entries of one session or client of its current run only, or (null) all of them.
   *
   * A change begins behind the last entry up to which nothing was left out, so that what was left out comes now.
   */
  readonly only = (session: string | null): void => {
    if (session === this.#session) return;
    if (this.#session === null) this.#whole = this.#here();
    else this.#goBack();
    this.#session = session;
    this.#publishSoon();
    if (this.#source === null) return;
    this.#close();
    this.#open();
  };

  #here(): Place {
    return { id: this.#resume, seq: this.#last, total: this.#ring.total };
  }

  #goBack(): void {
    this.#ring.forgetSince(this.#whole.total);
    this.#whole = { ...this.#whole, total: this.#ring.total };
    this.#resume = this.#whole.id;
    this.#last = this.#whole.seq;
    this.#cleared = true;
  }

  #close(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    this.#source?.close();
    this.#source = null;
  }

  #open(): void {
    const query = new URLSearchParams({ tables: TABLES.join(","), tail: String(TAIL) });
    if (this.#resume !== "") query.set("since", this.#resume);
    if (this.#session !== null) query.set("session", this.#session);
    const source = this.#around.open(`${DASHBOARD}/events?${query}`);
    this.#source = source;
    source.addEventListener("hello", (event) => this.#onHello(parseJson(event.data) as FeedHello));
    source.addEventListener("message", (event) => this.#onEntry(parseJson(event.data) as Entry, event.lastEventId));
    source.addEventListener("gap", (event) => this.#onGap(parseJson(event.data) as FeedGap, event.lastEventId));
    source.addEventListener("rows", (event) => this.#onRows(parseJson(event.data) as FeedRows));
    source.addEventListener("error", () => this.#onError(source));
  }

  #onHello(hello: FeedHello): void {
    const known = this.#hello?.run;
    if (known !== undefined && known !== hello.run) {
      this.#last = 0;
      this.#whole = { ...NOWHERE, total: this.#ring.total };
      for (const table of TABLES) this.#forget(table);
    }
    this.#hello = hello;
    this.#retry = FIRST_RETRY;
    for (const table of TABLES) this.#stale.add(table);
    this.#setStatus("live");
  }

  #onEntry(entry: Entry, id: string): void {
    this.#resume = id;
    if (entry.seq <= this.#last) return;
    this.#last = entry.seq;
    const run = this.#hello?.run ?? "";
    this.#ring.push({ type: "entry", key: `${run}-${entry.seq}`, run, entry });
    this.#publishSoon();
  }

  #onGap(gap: FeedGap, id: string): void {
    this.#resume = id;
    this.#last = Math.max(this.#last, gap.last ?? 0);
    const run = this.#hello?.run ?? "";
    this.#ring.push({ type: "gap", key: `${run}-gap-${this.#ring.total}`, run, gap });
    this.#publishSoon();
  }

  #onRows({ table, rows }: FeedRows): void {
    // they come with `view=1` only, which this page does not ask for
    if (table === "exchanges") return;
    // one of the tables, though not which: the map and the rows are of the same
    const known = this.#rows[table] as Map<string, Rows[Table]> | undefined;
    // a table of a server newer than this page
    if (known === undefined) return;
    if (this.#stale.delete(table)) this.#forget(table);
    for (const row of rows) known.set(row.id, row);
    for (const id of known.keys()) {
      if (known.size <= ROWS) break;
      known.delete(id);
    }
    this.#changed.add(table);
    this.#publishSoon();
  }

  #forget(table: Table): void {
    this.#rows[table].clear();
    this.#changed.add(table);
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
    this.#publishSoon();
  }

  #publishSoon(): void {
    if (this.#framed) return;
    this.#framed = true;
    this.#around.nextFrame(() => {
      this.#framed = false;
      this.#publish();
    });
  }

  #publish(): void {
    const before = this.#snapshot;
    const total = this.#ring.total;
    const rows = <Name extends Table>(table: Name) => (this.#changed.has(table) ? ([...this.#rows[table].values()] as Tables[Name]) : before.tables[table]);
    const narrowed = this.#session === null ? null : { session: this.#session, after: this.#whole.seq };
    this.#snapshot = {
      status: this.#status,
      items: total === before.total && !this.#cleared ? before.items : this.#ring.snapshot(),
      total,
      hello: this.#hello,
      narrowed: narrowed?.session === before.narrowed?.session && narrowed?.after === before.narrowed?.after ? before.narrowed : narrowed,
      tables: this.#changed.size === 0 ? before.tables : forEachTable<Tables>(rows),
    };
    this.#changed.clear();
    this.#cleared = false;
    for (const listener of this.#listeners) listener();
  }
}

/** The newest items, up to a number; counts all there ever were. */
class Ring {
  readonly #capacity: number;
  #items: Item[] = [];
  #total = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(item: Item): void {
    this.#items.push(item);
    this.#total += 1;
    // thrown away by halves, as moving all of them for each one would be most of the work
    if (this.#items.length >= 2 * this.#capacity) this.#items = this.#items.slice(-this.#capacity);
  }

  clear(): void {
    this.#items = [];
  }

  /** Forgets what came after the first `total`, as far as it is still here; it counts on from where it is. */
  forgetSince(total: number): void {
    const count = Math.min(this.#items.length, this.#total - total);
    this.#items.length -= count;
  }

  get total(): number {
    return this.#total;
  }

  /** A copy, oldest first. */
  snapshot(): readonly Item[] {
    return this.#items.slice(-this.#capacity);
  }
}
