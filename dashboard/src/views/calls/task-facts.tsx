import { Link } from "wouter";
import type { CallRow, Entry, TaskRow } from "~/protocol/schema";
import { sentAfterCancel } from "~/trace/facts";
import { CopyButton } from "~/ui/copy-button";
import { Fact, Facts } from "~/ui/key-values";
import { Panel } from "~/ui/panel";
import { Duration, Time } from "~/ui/time";
import { StatusBadge } from "~/widgets/badges";
import { Cancellation } from "~/widgets/cancellation";
import { ProgressBar } from "~/widgets/progress-bar";
import { shareText } from "~/words/share";
import { Ttl } from "./task-ttl";
import { QUEUED, isOver } from "./tasks";
import styles from "./tasks.module.css";

interface FactsProps {
  id: string;
  /** Its row, unless it has made room for newer ones. */
  task: TaskRow | undefined;
  call: CallRow | undefined;
}

export function TaskFacts({ id, task, call }: FactsProps) {
  const session = task?.session ?? call?.session ?? null;
  return (
    <Panel title="Facts" actions={<CopyButton text={id} label="Copy id" />}>
      <Facts>
        <Fact name="Task">
          <code>{id}</code>
        </Fact>
        <Fact name="Tool">{task?.tool ?? call?.tool}</Fact>
        <Fact name="Session">
          {session === null ? "unknown" : <Link href={`/clients/${encodeURIComponent(session)}`}>{session}</Link>}
        </Fact>
        <Fact name="Client">{call ? `${call.client_name} ${call.client_version}` : "unknown"}</Fact>
        {call && call.label !== null && <Fact name="Label">{call.label}</Fact>}
        {task ? <RowFacts task={task} /> : <Fact name="Status">unknown: the table of tasks no longer has it</Fact>}
      </Facts>
    </Panel>
  );
}

function RowFacts({ task }: { task: TaskRow }) {
  return (
    <>
      <Fact name="Status">
        <StatusBadge status={task.status} />
        {task.status === "queued" && <p className={styles["quiet"]}>{QUEUED}</p>}
      </Fact>
      <Fact name="Status message">{task.message ?? "none"}</Fact>
      <Fact name="Progress">
        {task.progress === null ? (
          "none reported"
        ) : (
          <ProgressBar label="progress" done={task.progress} total={task.total} status={task.status} />
        )}
      </Fact>
      <Fact name="Created">
        <Time at={task.created_at} look="both" />
      </Fact>
      <Fact name={isOver(task) ? "Last change" : "Updated"}>
        <Time at={task.updated_at} look="both" />
      </Fact>
      <Fact name="Time to live">
        <Duration ms={task.ttl_ms} />
      </Fact>
      <Fact name="Kept for">
        <Ttl task={task} />
      </Fact>
    </>
  );
}

/** Who stopped the work, how long that took, and how far it was. */
export function Stopped({ call, by, entries }: { call: CallRow; by: string; entries: readonly Entry[] }) {
  return (
    <Panel title="Cancellation">
      <Cancellation by={by} reason={call.cancel_reason} latency={call.cancel_latency_ms} after={sentAfterCancel(entries)}>
        <Fact name="Steps">{call.steps_done === null ? "none reported" : shareText(call.steps_done, call.steps_total)}</Fact>
        <Fact name="Done">{String(call.done)}</Fact>
      </Cancellation>
    </Panel>
  );
}
