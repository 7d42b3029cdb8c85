import type { CallRow, CountsRow, Entry, EntryView, ExchangeRow, FeedGap, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow } from "~/protocol/schema";

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

/** An entry with what the server says of its place: asked for with `view=1`. */
export type Viewed = Entry & { view: EntryView };

/** An entry with the run that it is of. It is replaced when it was delivered. */
export interface Kept {
  /** Unique over runs. */
  key: string;
  run: string;
  entry: Viewed;
}

/** What an entry of one kind has in it. */
export type Of<Kind extends Entry["kind"]> = Extract<Viewed, { kind: Kind }>;

/** An exchange as a line of a list and as a bar over time. It is replaced when anything of it changes. */
export interface Span {
  /** Unique over runs. */
  key: string;
  run: string;
  row: ExchangeRow;
  /** The entry that a line shows first, and the first answer; null where they are not at hand. */
  head: Viewed | null;
  answer: Viewed | null;
  /** In seconds since the epoch, by the monotonic clock; `until` is null while it or its work goes on. */
  from: number;
  until: number | null;
}

/** Entries that are missing; null where nothing is known of what came between two runs. */
export interface Gap {
  key: string;
  run: string;
  reason: FeedGap["reason"];
  first: number | null;
  last: number | null;
}
