import type { TaskRow } from "~/protocol/schema";
import { useNow } from "~/ui/time";
import { formatSeconds } from "~/ui/time-format";
import { ttlLeft } from "./tasks";

/** How long the task can still be asked for, or why it no longer can. */
export function Ttl({ task }: { task: TaskRow }) {
  return task.removed === null ? <Left task={task} /> : <span title="The server has forgotten it">gone: {task.removed}</span>;
}

function Left({ task }: { task: TaskRow }) {
  const left = ttlLeft(task, useNow());
  return <span title={`ttl ${task.ttl_ms} ms from its creation`}>{left === 0 ? "due" : formatSeconds(left)}</span>;
}
