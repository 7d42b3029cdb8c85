import type { Entry, TaskRow } from "~/protocol/schema";
import { progressOf } from "~/trace/facts";

export const STATUSES = ["queued", "working", "input_required", "completed", "failed", "cancelled"] as const;

/** What `queued` means, wherever it is shown. */
export const QUEUED =
  "queued is this dashboard's own state, before the work has begun; clients are told working, as the protocol has no other word.";

export interface Wanted {
  status: string;
  session: string;
  text: string;
}

/** The tasks that pass, newest first. */
export function wantedTasks(tasks: readonly TaskRow[], { status, session, text }: Wanted): TaskRow[] {
  const needle = text.toLowerCase();
  const passes = (task: TaskRow) =>
    (status === "" || task.status === status) &&
    (session === "" || task.session === session) &&
    (needle === "" || [task.id, task.tool, task.message, task.call].some((each) => each?.toLowerCase().includes(needle)));
  return tasks.filter(passes).toReversed().toSorted((a, b) => b.created_at - a.created_at);
}

export function isOver(task: TaskRow): boolean {
  return task.status === "completed" || task.status === "failed" || task.status === "cancelled";
}

/** Seconds until the task may be forgotten; `now` in seconds since the epoch. */
export function ttlLeft(task: TaskRow, now: number): number {
  return Math.max(0, task.created_at + task.ttl_ms / 1000 - now);
}

const OF_TASK = new Set(["task.changed", "task.removed", "call.started", "call.cancelled", "call.settled"]);
const ASKED = new Set(["tasks/cancel", "tasks/result", "tasks/update"]);

/** The entries that tell the story of a task: its statuses, its progress, what stopped it, and who asked for its result. */
export function storyOf(entries: readonly Entry[]): Entry[] {
  return entries.filter(
    (entry) =>
      OF_TASK.has(entry.kind) ||
      progressOf(entry) !== null ||
      (entry.kind === "message.received" && ASKED.has(entry.method ?? "")),
  );
}

/** The entry that the story counts from: the creation of the task, or the oldest that is left. */
export function beginning(story: readonly Entry[]): Entry | undefined {
  return story.find((entry) => entry.kind === "task.changed") ?? story[0];
}
