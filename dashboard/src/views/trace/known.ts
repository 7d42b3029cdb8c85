import { createContext, use, useMemo, useSyncExternalStore } from "react";
import type { Entry, SessionRow } from "~/protocol/schema";
import { type Client, Relations } from "./relations";

/** What the view knows beside an entry itself. */
export class Known {
  /** The life of the server that the feed speaks of. */
  readonly run: string;
  readonly runs: ReadonlyMap<string, Relations>;
  readonly #sessions: ReadonlyMap<string, SessionRow>;

  constructor(run: string, runs: ReadonlyMap<string, Relations>, sessions: readonly SessionRow[]) {
    this.run = run;
    this.runs = runs;
    this.#sessions = new Map(sessions.map((row) => [row.id, row]));
  }

  relations(run: string): Relations {
    return this.runs.get(run) ?? NONE;
  }

  /** Who a label stands for. A label means somebody else in each run. */
  client(run: string, label: string): Client | null {
    const row = run === this.run ? this.#sessions.get(label) : undefined;
    if (row !== undefined) return { label: row.label, name: row.client_name, version: row.client_version, revision: row.revision };
    return this.relations(run).clients.get(label) ?? null;
  }

  entry(run: string, seq: number): Entry | undefined {
    return this.relations(run).bySeq.get(seq);
  }
}

const NONE = new Relations();

/** The era that a label tells by its letter. */
export function eraOf(label: string): "modern" | "legacy" {
  return label.startsWith("m") ? "modern" : "legacy";
}

/** What the view knows, for cells that are made once and not with each frame. */
export class KnownStore {
  current: Known;
  readonly #listeners = new Set<() => void>();

  constructor(known: Known) {
    this.current = known;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly show = (known: Known): void => {
    if (known === this.current) return;
    this.current = known;
    for (const listener of this.#listeners) listener();
  };
}

export const KnownContext = createContext(new KnownStore(new Known("", new Map(), [])));

/** A part of what the view knows; the component renders again when that part is another value. */
export function useKnown<Part>(take: (known: Known) => Part): Part {
  const store = use(KnownContext);
  return useSyncExternalStore(store.subscribe, () => take(store.current));
}

/** All of it: for what is shown once, and not in each row. */
export function useAllKnown(): Known {
  return useKnown(whole);
}

const whole = (known: Known) => known;

/** The client of a label, null where it is not known. */
export function useClient(run: string, label: string | null): Client | null {
  // its row is another one with each request that is counted; this text is the same
  const text = useKnown((known) => (label === null ? "null" : JSON.stringify(known.client(run, label))));
  return useMemo(() => JSON.parse(text) as Client | null, [text]);
}

/** The method of a message, as `Relations.methodOf`. */
export function useMethod(run: string, entry: Entry): string | null {
  return useKnown((known) => known.relations(run).methodOf(entry));
}
