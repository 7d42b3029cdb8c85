import { scalarText } from "~/protocol/json";
import type { CallRow, StreamRow, TaskRow } from "~/protocol/schema";
import { type Lane, TERMINAL } from "./lane";

/** A call of which the entries are not at hand. */
export function fromCall(row: CallRow): Lane {
  const to = row.duration_ms === null ? null : row.started_at + row.duration_ms / 1000;
  const { cancelled_by: by, cancel_latency_ms: latency } = row;
  // the moment itself is not in the row; it lies its latency before the end
  const cancelled = by === null || latency === null || to === null ? null : { at: to - latency / 1000, by, reason: row.cancel_reason };
  return {
    key: `${row.run}/call/${row.call}`,
    kind: "call",
    session: row.session,
    id: row.call,
    name: row.tool,
    href: `/calls/${row.id}`,
    from: row.started_at,
    to,
    state: row.outcome ?? "running",
    cancelled,
    ticks: [],
    phases: [],
    facts: { "Request id": scalarText(row.request_id), Messages: `${row.emitted} emitted, ${row.delivered} delivered` },
  };
}

/** The same for a task. `call` is the lane of its work: once a task was removed, only that still knows when it ended. */
export function fromTask(row: TaskRow, run: string, call: Lane | undefined): Lane {
  const over = TERMINAL.has(row.status) || row.removed !== null;
  const changed = over ? row.updated_at : null;
  return {
    key: `${run}/task/${row.id}`,
    kind: "task",
    session: row.session,
    id: row.id,
    name: row.tool,
    href: `/calls/tasks/${row.id}`,
    from: row.created_at,
    to: row.removed === null ? changed : (call?.to ?? changed),
    state: row.status,
    cancelled: call?.cancelled ?? null,
    ticks: [],
    phases: [],
    facts: row.removed === null ? {} : { Removed: row.removed },
  };
}

/** The same for a stream. */
export function fromStream(row: StreamRow, run: string): Lane {
  const query = new URLSearchParams({ ...(row.session !== null && { session: row.session }), stream: row.stream });
  const { id, session, stream, purpose, opened_at: from, ended_at: to } = row;
  const facts = { Messages: `${row.messages} emitted, ${row.delivered} delivered` };
  return { key: `${run}/stream/${id}`, kind: "stream", session, id: stream, name: purpose, href: `/live?${query}`, from, to, state: row.lost === null ? (to === null ? "open" : "ended") : "lost", cancelled: null, ticks: [], phases: [], facts };
}
