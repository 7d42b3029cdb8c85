import { useMemo } from "react";
import { useLocation } from "wouter";
import type { Entry, SessionRow, TaskRow } from "~/protocol/schema";
import { progressOf } from "~/trace/entry";
import { useFeed } from "~/trace/feed";
import { useEnd, useEnded } from "~/trace/use-trace";
import { Button } from "~/ui/buttons";
import { DataTable } from "~/ui/data-table";
import { SearchField, Select } from "~/ui/fields";
import type { Column } from "~/ui/grid-columns";
import { Page } from "~/ui/page";
import { EmptyState, ShownOf } from "~/ui/panel";
import { Time, useNow } from "~/ui/time";
import { formatSeconds } from "~/ui/time-format";
import { useUrlState } from "~/ui/window";
import { ProgressBar, StatusBadge } from "~/widgets/badges";
import { NothingYet } from "~/widgets/connect-client";
import { stateOf } from "~/words/states";
import { clientName } from "~/words/text";
import { CALLS_TABS } from "./calls";
import styles from "./calls.module.css";

function columnsFor(sessions: readonly SessionRow[]): Column<TaskRow>[] {
  return [
    { key: "tool", head: "Tool", width: { fit: [6, 14] }, sortBy: ({ tool }) => tool, cell: (task) => <span title={task.id}>{task.tool}</span> },
    {
      key: "status",
      head: "Status",
      width: { fit: [5, 9] },
      sortBy: ({ status }) => status,
      cell: (task) => <Status task={task} />,
    },
    {
      key: "progress",
      head: "Progress",
      width: "minmax(6rem, 10rem)",
      cell: (task) => <Progress task={task} />,
    },
    { key: "message", head: "Status message", width: { grow: 2, least: 8 }, from: 36, cell: (task) => <Message task={task} /> },
    { key: "client", head: "Client", width: { grow: 1, least: 7 }, from: 46, sortBy: ({ session }) => session, cell: (task) => <Client name={clientName(task.session, sessions)} /> },
    { key: "created", head: "Created", width: { fit: [4, 9] }, from: 54, sortBy: ({ created_at: at }) => at, cell: (task) => <Time at={task.created_at} /> },
    { key: "updated", head: "Updated", width: "5rem", from: 62, sortBy: ({ updated_at: at }) => at, cell: (task) => <Time at={task.updated_at} look="ago" /> },
    { key: "ttl", head: "Kept for", width: "7rem", align: "end", from: 68, cell: (task) => <Ttl task={task} /> },
    { key: "id", head: "Task", width: "7rem", from: 76, cell: (task) => <code title={task.id}>{task.id}</code> },
  ];
}

function Status({ task }: { task: TaskRow }) {
  const state = stateOfTask(task, useEnded());
  return <StatusBadge status={state} title={state !== task.status ? lastStatus(task) : task.status === "queued" ? QUEUED : undefined} />;
}

/** `ended` says that the log has ended: what a task had not done by then is not known. */
export const stateOfTask = (task: TaskRow, ended: boolean): string => (ended && !isOver(task) ? "open_at_end" : task.status);

/** What is known of a task that a file ends before. */
export const lastStatus = ({ status }: TaskRow) => `The file ends here; the last status was ${stateOf(status).label}.`;

function Client({ name }: { name: string }) {
  return <span title={name}>{name}</span>;
}

function Progress({ task }: { task: TaskRow }) {
  return <ProgressBar label={`progress of task ${task.id}`} done={task.progress} total={task.total} status={stateOfTask(task, useEnded())} />;
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
  const ended = useEnded();
  const open = rows.filter((task) => stateOfTask(task, ended) === "open_at_end").length;
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
      {open > 0 && <p className={`${styles["note"]} strip`}>The file ends while {open === 1 ? "1 task is" : `${open} tasks are`} open. What became of {open === 1 ? "it" : "them"} is not in it.</p>}
      {open === 0 && rows.some((task) => task.status === "queued") && <p className={`${styles["note"]} strip`}>{QUEUED}</p>}
      <DataTable
        label="Tasks"
        remember="tasks"
        columns={columns}
        rows={rows}
        rowKey={(task) => task.id}
        cameAt={({ created_at: at }) => at}
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

const STATUSES = ["queued", "working", "input_required", "completed", "failed", "cancelled"] as const;

/** What `queued` means, wherever it is shown. */
export const QUEUED =
  "queued is this dashboard's own state, before the work has begun; clients are told working, as the protocol has no other word.";

interface Wanted {
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
export function storyOf<Each extends Entry>(entries: readonly Each[]): Each[] {
  return entries.filter(
    (entry) =>
      OF_TASK.has(entry.kind) ||
      progressOf(entry) !== null ||
      (entry.kind === "message.received" && ASKED.has(entry.method ?? "")),
  );
}

/** The entry that the story counts from: the creation of the task, or the oldest that is left. */
export function beginning<Each extends Entry>(story: readonly Each[]): Each | undefined {
  return story.find((entry) => entry.kind === "task.changed") ?? story[0];
}

/** How long the task can still be asked for, or why it no longer can. */
export function Ttl({ task }: { task: TaskRow }) {
  return task.removed === null ? <Left task={task} /> : <span title="The server has forgotten it">gone: {task.removed}</span>;
}

function Left({ task }: { task: TaskRow }) {
  const now = useNow();
  const left = ttlLeft(task, useEnd() ?? now);
  return <span title={`ttl ${task.ttl_ms} ms from its creation`}>{left === 0 ? "due" : formatSeconds(left)}</span>;
}
