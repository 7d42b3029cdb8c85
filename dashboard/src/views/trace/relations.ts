import type { CallStarted, Entry, MessageEmitted, MessagesDelivered } from "~/protocol/schema";
import { isAnswer, messagesOf, methodOf, requestOf } from "~/trace/evidence";
import type { Line } from "./merge";

export interface Client {
  /** The label that it was given. */
  label: string | null;
  name: string;
  version: string;
  revision: string;
}

/** How entries of one run belong together: by their causes alone. */
export class Relations {
  readonly bySeq = new Map<number, Entry>();
  readonly calls = new Map<string, CallStarted>();
  readonly clients = new Map<string, Client>();
  /** The newest entry that is known to be missing. */
  missing = 0;
  readonly #effects = new Map<number, Entry[]>();
  readonly #exchanges = new Map<number, Entry[]>();
  // by the `seq` of the message
  readonly #deliveries = new Map<number, MessagesDelivered>();

  readonly entryOf = (seq: number): Entry | undefined => this.bySeq.get(seq);

  take(entry: Entry): void {
    this.bySeq.set(entry.seq, entry);
    if (entry.cause !== null) add(this.#effects, entry.cause, entry);
    if (entry.exchange !== null) add(this.#exchanges, entry.exchange, entry);
    if (entry.kind === "message.delivered") {
      // a stream that is read again delivers its messages again: the first time counts
      for (const { seq } of messagesOf(entry, this.entryOf)) if (!this.#deliveries.has(seq)) this.#deliveries.set(seq, entry);
    } else if (entry.kind === "call.started" && entry.call !== null) {
      this.calls.set(entry.call, entry);
    } else if ((entry.kind === "session.opened" || entry.kind === "client.seen") && entry.session !== null) {
      this.clients.set(entry.session, { label: entry.label, name: entry.client_name, version: entry.client_version, revision: entry.revision });
    }
  }

  /** The entries that an entry caused, as far as they are at hand. */
  effectsOf(seq: number): readonly Entry[] {
    return this.#effects.get(seq) ?? NONE;
  }

  /** The entries of the same exchange, as far as they are at hand; none where it is of none. */
  exchangeOf({ exchange }: Entry): readonly Entry[] {
    return exchange === null ? NONE : (this.#exchanges.get(exchange) ?? NONE);
  }

  /** The answer to a request, if that is at hand. */
  answerOf(seq: number): Entry | undefined {
    return this.effectsOf(seq).find(isAnswer);
  }

  /** The request that an entry answers, if that is at hand. */
  requestOf(entry: Entry): Entry | undefined {
    return requestOf(entry, this.entryOf);
  }

  /** The method of a message, of a response that of its request; null for what is no message, and where it is not known. */
  methodOf(entry: Entry): string | null {
    return methodOf(entry, this.entryOf);
  }

  /** When a socket took an emitted message; `not yet`, or `unknown` because entries are missing that might say so. */
  deliveryOf({ seq }: MessageEmitted): MessagesDelivered | "not yet" | "unknown" {
    return this.#deliveries.get(seq) ?? (this.missing > seq ? "unknown" : "not yet");
  }

  /** Whether a delivery is told by the rows of its messages, so that it needs none of its own. */
  folds({ cause }: MessagesDelivered): boolean {
    return cause !== null && this.bySeq.has(cause);
  }
}

const NONE: readonly Entry[] = [];

function add(lists: Map<number, Entry[]>, key: number, entry: Entry): void {
  const before = lists.get(key);
  if (before === undefined) lists.set(key, [entry]);
  else before.push(entry);
}

// as many as the feed keeps: after so many, most of what was noted belongs to entries that are gone
const RENEWED_AFTER = 10_000;

/** The relations of each run that the lines come from. They grow with the list, and now and then begin anew. */
export class RelationsOfRuns {
  #runs = new Map<string, Relations>();
  #taken = 0;
  #last: Line | null = null;

  /** Takes in what was added at the end of the list since the last call. The answer is a new map, as what is in it has grown. */
  extend(lines: readonly Line[]): ReadonlyMap<string, Relations> {
    let from = this.#taken < RENEWED_AFTER + lines.length && this.#last !== null ? lines.lastIndexOf(this.#last) + 1 : 0;
    if (from === 0) {
      this.#runs = new Map();
      this.#taken = 0;
    }
    this.#taken += lines.length - from;
    for (; from < lines.length; from += 1) {
      const line = lines[from];
      if (line !== undefined) this.#take(line);
    }
    this.#last = lines.at(-1) ?? null;
    return new Map(this.#runs);
  }

  #take(line: Line): void {
    const relations = this.#runs.get(line.run) ?? new Relations();
    this.#runs.set(line.run, relations);
    if (line.type === "entry") relations.take(line.entry);
    else relations.missing = Math.max(relations.missing, line.gap.last ?? 0);
  }
}
