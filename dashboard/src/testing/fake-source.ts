import { Feed } from "~/trace/feed";

/** What an entry says of its context and its cause when it says nothing. */
export const NO_CONTEXT = { cause: null, connection: null, exchange: null, label: null, session: null, call: null, task: null, stream: null };

/** An EventSource that a test plays the server of. */
class FakeSource extends EventTarget {
  readonly CONNECTING = 0;
  readonly OPEN = 1;
  readonly CLOSED = 2;
  readonly url: string;
  readyState = 0;

  constructor(url: string) {
    super();
    this.url = url;
  }

  say(event: string, data: unknown, lastEventId = ""): void {
    this.readyState = this.OPEN;
    this.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data), lastEventId }));
  }

  hello(run: string, more: object = {}): void {
    this.say("hello", { run, version: "0", started_at: 0, first: 1, last: 1, resumed: false, ...more }, (more as { id?: string }).id ?? "");
  }

  entry(run: string, seq: number, more: object = {}): void {
    const view = { exchange: -seq, on_wire: false, group: "server", problem: null, direction: null, method: null, delivered: null, delivers: [], passes: null };
    this.say("message", { seq, at: seq, mono: (more as { at?: number }).at ?? seq, kind: "server.state", ...NO_CONTEXT, view, ...more }, `${run}-${seq}`);
  }

  /** The connection is lost and the browser tries again, or (`refused`) gives up. */
  fail(refused = false): void {
    this.readyState = refused ? this.CLOSED : this.CONNECTING;
    this.dispatchEvent(new Event("error"));
  }

  close(): void {
    this.readyState = this.CLOSED;
  }
}

/** A feed whose connections, frames and delays the test makes happen. */
export class FakeFeed {
  readonly sources: FakeSource[] = [];
  readonly delays: { ms: number; callback: () => void }[] = [];
  readonly feed: Feed;
  #frames: (() => void)[] = [];

  constructor() {
    this.feed = new Feed({
      open: (url) => {
        const source = new FakeSource(url);
        this.sources.push(source);
        return source as unknown as EventSource;
      },
      nextFrame: (callback) => {
        this.#frames.push(callback);
      },
      after: (ms, callback) => {
        const delay = { ms, callback };
        this.delays.push(delay);
        return () => {
          this.delays.splice(this.delays.indexOf(delay), 1);
        };
      },
    });
  }

  /** The newest connection. */
  get source(): FakeSource {
    const source = this.sources.at(-1);
    if (source === undefined) throw new Error("the feed has not connected");
    return source;
  }

  /** Draws the next picture; returns how many were asked for. */
  frame(): number {
    const due = this.#frames;
    this.#frames = [];
    for (const callback of due) callback();
    return due.length;
  }
}
