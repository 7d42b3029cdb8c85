import type { CallRow, CountsRow, Entry, FeedGap, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow } from "~/protocol/schema";

/** The tables that the feed keeps up to date. */
export const TABLES = ["tasks", "calls", "sessions", "streams", "hosts", "refusals", "counts"] as const;
export type Table = (typeof TABLES)[number];

/** What is in a row of each of them. */
export interface Rows {
  tasks: TaskRow;
  calls: CallRow;
  sessions: SessionRow;
  streams: StreamRow;
  hosts: HostRow;
  refusals: RefusalRow;
  /** One row: how many entries the log of the server keeps. */
  counts: CountsRow;
}

/** What the feed shows in order: entries, and the places where some are missing. `key` is unique over runs. */
export type Item =
  | { type: "entry"; key: string; run: string; entry: Entry }
  | { type: "gap"; key: string; run: string; gap: FeedGap };
