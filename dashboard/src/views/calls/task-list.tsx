import { useMemo } from "react";
import { useLocation } from "wouter";
import type { SessionRow, TaskRow } from "~/protocol/schema";
import { useFeed } from "~/trace/use-feed";
import { Button } from "~/ui/button";
import { Select } from "~/ui/choice";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import type { Column } from "~/ui/grid-columns";
import { Page } from "~/ui/page";
import { SearchField } from "~/ui/search-field";
import { ShownOf } from "~/ui/shown-of";
import { Time } from "~/ui/time";
import { useUrlState } from "~/ui/url-state";
import { StatusBadge } from "~/widgets/badges";
import { NothingYet } from "~/widgets/nothing-yet";
import { ProgressBar } from "~/widgets/progress-bar";
import { clientName } from "~/words/client-name";
import { CALLS_TABS } from "./calls-tabs";
import { Ttl } from "./task-ttl";
import { QUEUED, STATUSES, wantedTasks } from "./tasks";
import styles from "./tasks.module.css";

function columnsFor(sessions: readonly SessionRow[]): Column<TaskRow>[] {
  return [
    { key: "tool", head: "Tool", width: { fit: [6, 14] }, sortBy: ({ tool }) => tool, cell: (task) => <span title={task.id}>{task.tool}</span> },
    {
      key: "status",
      head: "Status",
      width: { fit: [5, 9] },
      sortBy: ({ status }) => status,
      cell: (task) => <StatusBadge status={task.status} title={task.status === "queued" ? QUEUED : undefined} />,
    },
    {
      key: "progress",
      head: "Progress",
      width: "minmax(6rem, 10rem)",
      cell: (task) => <ProgressBar label={`progress of task ${task.id}`} done={task.progress} total={task.total} status={task.status} />,
    },
    { key: "message", head: "Status message", width: { grow: 2, least: 8 }, from: 36, cell: (task) => <Message task={task} /> },
    { key: "client", head: "Client", width: { grow: 1, least: 7 }, from: 46, sortBy: ({ session }) => session, cell: (task) => <Client name={clientName(task.session, sessions)} /> },
    { key: "created", head: "Created", width: { fit: [4, 9] }, from: 54, sortBy: ({ created_at: at }) => at, cell: (task) => <Time at={task.created_at} /> },
    { key: "updated", head: "Updated", width: "5rem", from: 62, sortBy: ({ updated_at: at }) => at, cell: (task) => <Time at={task.updated_at} look="ago" /> },
    { key: "ttl", head: "Kept for", width: "7rem", align: "end", from: 68, cell: (task) => <Ttl task={task} /> },
    { key: "id", head: "Task", width: "7rem", from: 76, cell: (task) => <code title={task.id}>{task.id}</code> },
  ];
}

function Client({ name }: { name: string }) {
  return <span title={name}>{name}</span>;
}

function Message({ task }: { task: TaskRow }) {
  return task.message !== null && <span title={task.message}>{task.message}</span>;
}

/** All tasks that the server knows, as they change. */
export function TaskList() {
  const [, navigate] = useLocation();
  const tasks = useFeed((snapshot) => snapshot.tables.tasks);
  const sessions = useFeed((snapshot) => snapshot.tables.sessions);
  const [status, setStatus] = useUrlState("status");
  const [session, setSession] = useUrlState("session");
  const [text, setText] = useUrlState("text");
  const rows = useMemo(() => wantedTasks(tasks, { status, session, text }), [tasks, status, session, text]);
  const columns = useMemo(() => columnsFor(sessions), [sessions]);
  const labels = [...new Set(tasks.map((task) => task.session ?? ""))].filter((label) => label !== "");
  const tools = (
    <>
      <Select
        label="Status"
        options={[{ value: "", label: "all" }, ...STATUSES.map((value) => ({ value, label: value.replaceAll("_", " ") }))]}
        value={status}
        onChange={setStatus}
      />
      <Select
        label="Client"
        options={[{ value: "", label: "all" }, ...labels.map((value) => ({ value, label: clientName(value, sessions) }))]}
        value={session}
        onChange={setSession}
      />
      <SearchField label="Search tasks" value={text} onChange={setText} />
      <ShownOf shown={rows.length} all={tasks.length} />
    </>
  );
  return (
    <Page title="Calls" part="Tasks" tabs={CALLS_TABS} tools={tools}>
      {rows.some((task) => task.status === "queued") && <p className={styles["note"]}>{QUEUED}</p>}
      <DataTable
        label="Tasks"
        remember="tasks"
        columns={columns}
        rows={rows}
        rowKey={(task) => task.id}
        onSelect={(task) => navigate(`/calls/tasks/${encodeURIComponent(task.id)}`)}
        empty={tasks.length === 0 ? <NoTasks /> : <NoneWanted />}
      />
    </Page>
  );
}

function NoTasks() {
  return (
    <NothingYet title="No tasks since the server started">
      Each task appears here as soon as a client creates one. Call <code>task_with_progress</code> as a task for one with
      progress, <code>cancellable_task</code> to cancel it, <code>pausable_task</code> for one that asks for input.
    </NothingYet>
  );
}

function NoneWanted() {
  const [, navigate] = useLocation();
  return (
    <EmptyState title="No task passes these filters">
      <Button onClick={() => navigate("/calls/tasks")}>Clear the filters</Button>
    </EmptyState>
  );
}
