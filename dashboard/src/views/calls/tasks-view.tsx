import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import { get, traceHref } from "~/protocol/client";
import { quoted } from "~/protocol/filter";
import type { CallPage, CallRow, TaskRow } from "~/protocol/schema";
import { offsetOf, progressOf, sentAfterCancel, type Viewed } from "~/trace/entry";
import { useFeed } from "~/trace/feed";
import { type CallWithEvidence, useCallDetail, useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { CopyButton } from "~/ui/buttons";
import { Page } from "~/ui/page";
import { EmptyState, Fact, Facts, type Moment, Moments, Panel, Panels, Stack } from "~/ui/panel";
import { Duration, Time } from "~/ui/time";
import { Cancellation, ProgressBar, StatusBadge } from "~/widgets/badges";
import { stateOf } from "~/words/states";
import { describe, kindOf } from "~/words/entries";
import { shareText } from "~/words/text";
import { beginning, isOver, lastStatus, QUEUED, stateOfTask, storyOf, TaskList, Ttl } from "./task-list";
import styles from "./calls.module.css";

export default function TasksView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <TaskList /> : <TaskPage key={id} id={id} />;
}

/** Everything that is known of one task: its row of the feed, and the evidence of the call that became it. */
function TaskPage({ id }: { id: string }) {
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
    <Page title={titleOf(task ?? record, useEnded())} up={["/calls/tasks", "Tasks"]} tools={<Links id={id} call={call} />} scroll>
      {task === undefined && record === undefined ? (
        <Missing id={id} looking={run === undefined || audited.isLoading || detail.isLoading} />
      ) : (
        <Stack>
          <Panels>
            <TaskFacts id={id} task={task} call={record} />
            {record?.cancelled_how != null && <Stopped call={record} how={record.cancelled_how} entries={detail.data?.evidence.events ?? []} />}
          </Panels>
          <Story evidence={detail.data?.evidence} error={detail.error} run={record?.run} current={run} />
        </Stack>
      )}
    </Page>
  );
}

/** `cancellable_task, cancelled`: what it is and how it stands; the id is among the facts. */
function titleOf(of: TaskRow | CallRow | undefined, ended: boolean): string {
  if (of === undefined) return "Task";
  const state = "status" in of ? stateOfTask(of, ended) : of.outcome;
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
    <nav className="row apart" aria-label="Task">
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

interface FactsProps {
  id: string;
  /** Its row, unless it has made room for newer ones. */
  task: TaskRow | undefined;
  call: CallRow | undefined;
}

function TaskFacts({ id, task, call }: FactsProps) {
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
  const state = stateOfTask(task, useEnded());
  return (
    <>
      <Fact name="Status">
        <StatusBadge status={state} />
        {state !== task.status && <p className="quiet">{lastStatus(task)}</p>}
        {state === "queued" && <p className="quiet">{QUEUED}</p>}
      </Fact>
      <Fact name="Status message">{task.message ?? "none"}</Fact>
      <Fact name="Progress">
        {task.progress === null ? (
          "none reported"
        ) : (
          <ProgressBar label="progress" done={task.progress} total={task.total} status={state} />
        )}
      </Fact>
      <Fact name="Created">
        <Time at={task.created_at} look="both" />
      </Fact>
      <Fact name={state === "open_at_end" || isOver(task) ? "Last change" : "Updated"}>
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
function Stopped({ call, how, entries }: { call: CallRow; how: string; entries: readonly Viewed[] }) {
  return (
    <Panel title="Cancellation">
      <Cancellation how={how} reason={call.cancel_reason} latency={call.cancel_latency_ms} after={sentAfterCancel(entries)}>
        <Fact name="Steps">{call.steps_done === null ? "none reported" : shareText(call.steps_done, call.steps_total)}</Fact>
        <Fact name="Done">{String(call.done)}</Fact>
      </Cancellation>
    </Panel>
  );
}

interface StoryProps {
  evidence: CallWithEvidence["evidence"] | undefined;
  error: Error | null;
  /** The life of the server in which the entries were recorded, and the one that Live shows. */
  run: string | undefined;
  current: string | undefined;
}

/** The statuses of a task with its messages, its progress and its cancellation, in order. */
function Story({ evidence, error, run, current }: StoryProps) {
  const story = storyOf(evidence?.events ?? []);
  const from = beginning(story);
  const moments = from === undefined ? [] : story.map((entry) => momentOf(entry, from, run === current));
  return (
    <Panel title="Timeline" actions={from && <span className="quiet">from <Time at={from.at} /></span>}>
      {error !== null && <p role="alert">The evidence could not be read: {error.message}</p>}
      {evidence?.complete === false && <p>Incomplete: entries of this task were pushed out of the event log.</p>}
      {evidence !== undefined && moments.length === 0 && <p>No entry of this task is left.</p>}
      <Moments label="Timeline of the task" moments={moments} />
    </Panel>
  );
}

function momentOf(entry: Viewed, from: Viewed, linked: boolean): Moment {
  return { key: entry.seq, offset: offsetOf(entry, from), what: <What entry={entry} linked={linked} />, detail: <Detail entry={entry} /> };
}

function What({ entry, linked }: { entry: Viewed; linked: boolean }) {
  return (
    <>
      {linked ? <Link href={traceHref({ at: entry.seq })}>#{entry.seq}</Link> : <span>#{entry.seq}</span>}
      {entry.kind === "task.changed" ? <StatusBadge status={entry.status} /> : <Badge>{nameOf(entry)}</Badge>}
    </>
  );
}

function nameOf(entry: Viewed): string {
  if (progressOf(entry) !== null) return "progress";
  return entry.kind === "message.received" ? (entry.method ?? kindOf(entry.kind)) : kindOf(entry.kind);
}

/** Why a report of progress was not made a message of a stream; null for one that was. */
function unsent(entry: Viewed): string | null {
  if (entry.kind === "message.dropped") return `not sent: ${entry.why}`;
  return entry.kind === "call.progressed" ? "not sent: the client gave no token" : null;
}

function Detail({ entry }: { entry: Viewed }) {
  const progress = progressOf(entry);
  if (entry.kind === "task.changed") return entry.message ?? "";
  if (progress === null) return describe(entry, null);
  return (
    <span className={styles["tick"]}>
      <ProgressBar label="progress" done={progress.progress} total={progress.total} status="ended" />
      {progress.message}
      <span className="quiet">{unsent(entry)}</span>
    </span>
  );
}
