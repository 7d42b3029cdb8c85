import type { Entry } from "~/protocol/schema";
import { progressOf } from "~/trace/evidence";

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
