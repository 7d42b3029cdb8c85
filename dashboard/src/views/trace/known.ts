import { createContext, use } from "react";
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

export const KnownContext = createContext(new Known("", new Map(), []));

export function useKnown(): Known {
  return use(KnownContext);
}
