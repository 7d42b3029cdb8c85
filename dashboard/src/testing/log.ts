import type { Item } from "~/trace/entry";
import { FakeFeed } from "./fake-source";

/** Items as the feed makes them of entries of one run; `seq` is counted where it is not given. */
export function itemsOf(run: string, entries: readonly object[]): readonly Item[] {
  const fake = new FakeFeed();
  const stop = fake.feed.start();
  fake.source.hello(run);
  for (const [index, entry] of entries.entries()) fake.source.entry(run, index + 1, entry);
  fake.frame();
  stop();
  return fake.feed.snapshot().items;
}

/** The entry in which a call begins. */
export const started = (at: number, call: string, session: string, more: object = {}) => ({
  kind: "call.started", at, call, session, exchange: 1, request_id: 5, method: "tools/call", tool: "progress", progress_token: 0, task: null, ...more,
});

/** The entry in which it ends. */
export const settled = (at: number, call: string, session: string, more: object = {}) => ({
  kind: "call.settled", at, call, session, task: null, request_id: 5, outcome: "completed", answered: true, duration_ms: 0, cancelled_by: null,
  scope_exit_ms: null, sent_after_cancel: 0, steps_done: null, steps_total: null, ...more,
});

/** A report of progress on a stream. */
export const progress = (at: number, call: string, session: string, position: number, more: object = {}) => ({
  kind: "message.emitted", at, call, session, stream: "p1", exchange: 1, position, rpc: "notification", id: null,
  method: "notifications/progress", message: { params: { progress: position, total: 3 } }, ...more,
});

/** A socket took messages of the stream of a call; `cause` is the number of the first one's entry. */
export const delivered = (at: number, call: string, session: string, first: number, last: number, cause: number) => ({
  kind: "message.delivered", at, call, session, stream: "p1", exchange: 1, first, last, cause,
});
