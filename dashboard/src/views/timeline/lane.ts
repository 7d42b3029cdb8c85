/** A message, or a report of progress that no message carries. */
export interface Tick {
  what: "progress" | "message" | "request" | "answer" | "unheard";
  /** When it was emitted, in seconds since the epoch. */
  at: number;
  /** When a socket took it; null as long as none has. */
  delivered: number | null;
  label: string;
}

/** A part of a lane: a status of a task, or the time during which a connection read a stream. */
export interface Phase {
  from: number;
  /** Null: still so. */
  to: number | null;
  status: string;
  note: string;
}

export interface Cancellation {
  at: number;
  by: string;
  reason: string | null;
}

/** One call, task or stream over time. Times are seconds since the epoch, by the clock of the server. */
export interface Lane {
  /** Unique over runs and clients: `RUN/call/c7`. */
  key: string;
  kind: "call" | "task" | "stream";
  /** The label of whom it belongs to; null where that is unknown. */
  session: string | null;
  id: string;
  /** The tool or method, or the purpose of a stream. */
  name: string;
  href: string;
  from: number;
  /** When it was over, for work: when its scope had exited; null while it goes on. */
  to: number | null;
  /** Its outcome or status: a word of words/states.ts. */
  state: string;
  cancelled: Cancellation | null;
  ticks: Tick[];
  phases: Phase[];
  facts: Readonly<Record<string, string>>;
}

/** The statuses of a task that stay. */
export const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

/** From when to when is shown. */
export interface Span {
  from: number;
  until: number;
}

/** Whether some of the lane lies in the span. `now` is where lanes that go on end for the time being. */
export function overlaps(lane: Lane, { from, until }: Span, now: number): boolean {
  return lane.from <= until && (lane.to ?? Math.max(now, lane.from)) >= from;
}

/** How many messages a lane has, and how many of them a socket took. */
export function counted(lane: Lane): { emitted: number; delivered: number; progress: number } {
  const messages = lane.ticks.filter((tick) => tick.what !== "unheard");
  return {
    emitted: messages.length,
    delivered: messages.filter((tick) => tick.delivered !== null).length,
    progress: lane.ticks.filter((tick) => tick.what === "progress" || tick.what === "unheard").length,
  };
}
