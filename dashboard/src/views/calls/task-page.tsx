import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import { get } from "~/protocol/client";
import { quoted } from "~/protocol/filter";
import type { CallPage } from "~/protocol/schema";
import { useCallDetail } from "~/trace/call-detail";
import { useFeed } from "~/trace/use-feed";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Panels, Stack } from "~/ui/panel";
import { stateOf } from "~/words/states";
import { Stopped, TaskFacts } from "./task-facts";
import { Story } from "./task-story";
import styles from "./tasks.module.css";

/** Everything that is known of one task: its row of the feed, and the evidence of the call that became it. */
export function TaskPage({ id }: { id: string }) {
  const run = useFeed((snapshot) => snapshot.hello?.run);
  const tasks = useFeed((snapshot) => snapshot.tables.tasks);
  const calls = useFeed((snapshot) => snapshot.tables.calls);
  const task = tasks.find((row) => row.id === id);
  const audited = useAuditedCall(id, run !== undefined && task === undefined);
  const call = task?.call != null && run !== undefined ? `${run}.${task.call}` : (audited.data ?? null);
  const row = calls.find((each) => each.id === call);
  const detail = useCallDetail(call, row ?? task);
  const record = detail.data?.call;
  return (
    <Page title={titleOf(task ?? record)} up={["/calls/tasks", "Tasks"]} tools={<Links id={id} call={call} />} scroll>
      {task === undefined && record === undefined ? (
        <Missing id={id} looking={run === undefined || audited.isLoading || detail.isLoading} />
      ) : (
        <Stack>
          <Panels>
            <TaskFacts id={id} task={task} call={record} />
            {record?.cancelled_by != null && <Stopped call={record} by={record.cancelled_by} entries={detail.data?.evidence.events ?? []} />}
          </Panels>
          <Story evidence={detail.data?.evidence} error={detail.error} run={record?.run} current={run} />
        </Stack>
      )}
    </Page>
  );
}

/** `cancellable_task, cancelled`: what it is and how it stands; the id is among the facts. */
function titleOf(of: { tool: string; status: string } | { tool: string; outcome: string | null } | undefined): string {
  if (of === undefined) return "Task";
  const state = "status" in of ? of.status : of.outcome;
  return state === null ? of.tool : `${of.tool}, ${stateOf(state).label}`;
}

/** The id of the call that became a task which the tables no longer have. */
function useAuditedCall(task: string, enabled: boolean) {
  return useQuery({
    queryKey: ["call of task", task],
    queryFn: ({ signal }) => get<CallPage>("/calls", { task, limit: 1 }, signal),
    select: (page) => page.calls[0]?.id ?? null,
    enabled,
  });
}

function Links({ id, call }: { id: string; call: string | null }) {
  return (
    <nav className={styles["links"]} aria-label="Task">
      <Link href={traceHref({ filter: `task:${quoted(id)}` })}>In the trace</Link>
      {call !== null && <Link href={`/calls/${encodeURIComponent(call)}`}>Its call {call}</Link>}
    </nav>
  );
}

function Missing({ id, looking }: { id: string; looking: boolean }) {
  if (looking) return <EmptyState title="Looking for the task" />;
  return (
    <EmptyState title="This task is not known">
      <p>
        Neither the server's table of tasks nor the audit has <code>{id}</code>. It may belong to an earlier run, or have made
        room for newer ones.
      </p>
    </EmptyState>
  );
}
