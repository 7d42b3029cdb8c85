import type { Entry, ExchangeRow } from "~/protocol/schema";
import { rowsOf, withViews } from "./rows";
import { type FakeFeed, NO_CONTEXT } from "./fake-source";

type Loose = { kind: Entry["kind"] } & Record<string, unknown>;

/** Entries for tests, in the shape in which a server gives them. */
export class Story {
  readonly entries: Entry[] = [];
  /** What rows of exchanges have that is not in their entries, by their numbers. */
  readonly rows: Record<number, Partial<ExchangeRow>> = {};
  #seq = 0;
  #exchange = 0;

  /** Adds one entry; times go on by a millisecond. */
  add(members: Loose): number {
    this.#seq += 1;
    const place = { seq: this.#seq, at: 1_790_000_000 + this.#seq / 1000, mono: 100 + this.#seq / 1000, ...NO_CONTEXT };
    this.entries.push({ ...place, ...members } as unknown as Entry);
    return this.#seq;
  }

  /** Has the feed bring what it has not brought yet, as the server does: rows first. `run` is the present one. */
  play({ feed, source, frame }: Pick<FakeFeed, "feed" | "source"> & { frame: () => unknown }, run = "a"): void {
    const viewed = withViews(this.entries);
    const known = feed.snapshot().trace.runs.find((each) => each.run === run)?.entries.at(-1)?.entry.seq ?? 0;
    source.say("rows", { table: "exchanges", rows: rowsOf(viewed, this.rows) });
    // as it was when it was sent, that a message was received is told by the delivery
    for (const entry of viewed) if (entry.seq > known) source.entry(run, entry.seq, { ...entry, view: { ...entry.view, delivered: null } });
    frame();
  }

  request(session: string | null, id: string | number, method: string, params?: unknown): { seq: number; exchange: number } {
    this.#exchange += 1;
    const exchange = this.#exchange;
    const headers = [["content-type", "application/json"]];
    const client = "127.0.0.1:50000";
    const cause = this.add({ kind: "http.request", exchange, method: "POST", path: "/mcp", query: "", http_version: "1.1", client, headers });
    const message = { jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) };
    return { exchange, seq: this.add({ kind: "message.received", exchange, session, batch: null, rpc: "request", method, id, message, cause }) };
  }

  emit(of: { exchange: number; session: string; stream: string | null; position: number | null; call?: string }, message: object, cause: number | null = null): number {
    const { id = null, method = null } = message as { id?: string | number | null; method?: string | null };
    const rpc = method !== null ? "notification" : "error" in message ? "error" : "response";
    return this.add({ kind: "message.emitted", ...of, rpc, method, id, message: { jsonrpc: "2.0", ...message }, cause });
  }

  deliver(of: { exchange: number; session: string; stream: string | null; call?: string }, first: number, last = first): number {
    const { exchange, session, stream, call = null } = of;
    const message = this.entries.findLast((entry) => entry.kind === "message.emitted" && entry.session === session && entry.stream === stream && (stream === null ? entry.exchange === exchange : entry.position === first));
    return this.add({ kind: "message.delivered", exchange, session, stream, call, first, last, cause: message?.seq ?? null });
  }

  opened(session: string, name: string, revision = "2025-11-25"): number {
    const members = { session, revision, client_name: name, client_version: "1.0", capabilities: {}, transport: "http" };
    return session.startsWith("m")
      ? this.add({ kind: "client.seen", client: "127.0.0.1", ...members })
      : this.add({ kind: "session.opened", session_id: "abc…", ...members });
  }

  /** A whole call of the progress tool, with `steps` notifications on a stream. */
  call(session: string, id: string | number, token: string | number, steps: number, outcome = "completed"): void {
    const { exchange, seq } = this.request(session, id, "tools/call", {
      name: "progress",
      arguments: { steps, step_ms: 50 },
      _meta: { progressToken: token },
    });
    const call = `c${exchange}`;
    const stream = `p${exchange}`;
    const of = { exchange, session, stream, call };
    const whose = { call, session, request_id: id };
    const begun = this.add({ kind: "call.started", ...whose, exchange, method: "tools/call", tool: "progress", progress_token: token, cause: seq });
    const open = this.add({ kind: "stream.opened", exchange, session, call, stream, purpose: "response", cause: seq });
    this.add({ kind: "http.response", exchange, cause: seq - 1, status: 200, content_type: "text/event-stream", session, stream, problem: null });
    for (let step = 1; step <= steps; step += 1) {
      const params = { progressToken: token, progress: step, total: steps, message: `step ${step}` };
      this.emit({ ...of, position: step }, { method: "notifications/progress", params }, begun);
      this.deliver(of, step);
    }
    const cancelled = outcome === "cancelled";
    this.add({
      kind: "call.settled",
      ...whose,
      exchange,
      outcome,
      answered: !cancelled,
      duration_ms: 50 * steps,
      cancelled_by: cancelled ? "notification" : null,
      scope_exit_ms: cancelled ? 0.2 : null,
      steps_done: steps,
      steps_total: steps,
      sent_after_cancel: 0,
      cause: begun,
    });
    if (!cancelled) {
      this.emit({ ...of, position: steps + 1 }, { id, result: { content: [{ type: "text", text: `done by ${session}` }] } }, seq);
      this.deliver(of, steps + 1);
    }
    this.add({ kind: "stream.ended", exchange, session, call, stream, messages: steps + 1, cause: open });
  }
}

/** A client with a call that has ended, and a ping without an answer. */
export function callAndPing(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.call("s1", 1, 0, 3);
  story.request("s1", 2, "ping");
  return story;
}
