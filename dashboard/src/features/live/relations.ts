import { isMessage } from "~/api/evidence";
import type { CallStarted, Entry, MessageEmitted, MessagesDelivered } from "~/api/schema";
import type { Belongs } from "./facts";
import type { Line } from "./merge";

export interface Client {
  name: string;
  version: string;
  revision: string;
}

/** How entries of one run belong together. Nothing is joined by a request id: those of two clients are equal. */
export class Relations {
  readonly bySeq = new Map<number, Entry>();
  /** By the `seq` of the request. */
  readonly answers = new Map<number, Entry>();
  readonly calls = new Map<string, CallStarted>();
  readonly clients = new Map<string, Client>();
  /** The newest entry that is known to be missing. */
  missing = 0;
  readonly #sessions = new Map<number, string>();
  readonly #deliveries = new Map<string, MessagesDelivered[]>();
  // the first message that is known of each place that deliveries are counted in
  readonly #firsts = new Map<string, number>();

  take(entry: Entry): void {
    this.bySeq.set(entry.seq, entry);
    const { exchange, session }: Belongs = entry;
    if (typeof exchange === "number" && typeof session === "string") this.#sessions.set(exchange, session);
    if (entry.kind === "message.emitted") this.#emitted(entry);
    else if (entry.kind === "message.delivered") this.#delivered(entry);
    else if (entry.kind === "call.started") this.calls.set(entry.call, entry);
    else if (entry.kind === "session.opened" || entry.kind === "client.seen") {
      this.clients.set(entry.session, { name: entry.client_name, version: entry.client_version, revision: entry.revision });
    }
    if (entry.pair !== null && isMessage(entry)) this.answers.set(entry.pair, entry);
  }

  #emitted(entry: MessageEmitted): void {
    const place = placeOf(entry);
    if (!this.#firsts.has(place)) this.#firsts.set(place, entry.position ?? 1);
  }

  #delivered(entry: MessagesDelivered): void {
    const place = placeOf(entry);
    const before = this.#deliveries.get(place);
    if (before === undefined) this.#deliveries.set(place, [entry]);
    else before.push(entry);
  }

  /** Whose entry it is: what it says itself, or what another one of the same call or exchange says. */
  sessionOf(entry: Entry): string | null {
    const { session, exchange, call }: Belongs = entry;
    if (typeof session === "string") return session;
    if (typeof call === "string") return this.calls.get(call)?.session ?? null;
    return typeof exchange === "number" ? (this.#sessions.get(exchange) ?? null) : null;
  }

  /** The method of a message, of a response that of its request; null for what is no message, and where it is not known. */
  methodOf(entry: Entry): string | null {
    switch (entry.kind) {
      case "call.started":
        return entry.method;
      case "message.received":
      case "message.emitted":
      case "message.dropped":
      case "host.message": {
        const request = entry.pair === null ? undefined : this.bySeq.get(entry.pair);
        return entry.method ?? (request !== undefined && "method" in request ? request.method : null);
      }
      default:
        return null;
    }
  }

  /** When a socket took an emitted message; `not yet`, or `unknown` because entries are missing that might say so. */
  deliveryOf(entry: MessageEmitted): MessagesDelivered | "not yet" | "unknown" {
    const position = entry.position;
    const found = this.#deliveries
      .get(placeOf(entry))
      ?.find((each) => each.seq > entry.seq && (position === null || (each.first <= position && position <= each.last)));
    return found ?? (this.missing > entry.seq ? "unknown" : "not yet");
  }

  /** Whether a delivery is told by the rows of its messages, so that it needs none of its own. */
  folds(entry: MessagesDelivered): boolean {
    const first = this.#firsts.get(placeOf(entry));
    return first !== undefined && first <= entry.first;
  }
}

/** What positions count in: a stream of a session, or the body of one response. */
function placeOf({ session, stream, exchange }: { session: string | null; stream: string | null; exchange: number | null }): string {
  return stream === null ? `exchange ${exchange}` : session === null ? `exchange ${exchange}/${stream}` : `${session}/${stream}`;
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
