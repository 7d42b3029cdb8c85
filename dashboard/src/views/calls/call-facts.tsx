import type { ReactNode } from "react";
import { Link } from "wouter";
import { traceHref, type TracePlace } from "~/protocol/client";
import { quoted } from "~/protocol/filter";
import type { CallRow } from "~/protocol/schema";
import { type Dispatch, dispatchOf, sentAfterCancel, type Viewed } from "~/trace/entry";
import { useEnd, useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { Fact, Facts, Panel, Panels, Stack } from "~/ui/panel";
import { Duration, Running, Time } from "~/ui/time";
import { formatDuration, formatLimit } from "~/ui/time-format";
import { Cancellation, EraBadge, ProgressBar, StatusBadge, TypedValue } from "~/widgets/badges";
import { stopped, unanswered } from "~/words/entries";
import { counted } from "~/words/text";
import { stateOfCall } from "./calls";

interface FactsProps {
  call: CallRow;
  entries: readonly Viewed[];
  /** Whether Live shows the run of this call. */
  current: boolean;
}

/** Every field of the row, in groups. */
export function CallFacts({ call, entries, current }: FactsProps) {
  return (
    <Panels>
      <Asked call={call} current={current} />
      <Stack>
        <Came call={call} />
        <Deadlines call={call} entries={entries} current={current} />
      </Stack>
      <Stack>
        <Cancelled call={call} entries={entries} />
        <Delivered call={call} />
      </Stack>
    </Panels>
  );
}

function Asked({ call, current }: { call: CallRow; current: boolean }) {
  const traced = (place: TracePlace, children: ReactNode) => (current ? <Link href={traceHref(place)}>{children}</Link> : children);
  const { session, task } = call;
  return (
    <Panel title="What was asked">
      <Facts>
        <Fact name="Tool">
          {call.tool} <span className="quiet">of toolset {call.toolset}</span>
        </Fact>
        <Fact name="Client">
          {call.client_name} {call.client_version}
        </Fact>
        {call.label !== null && <Fact name="Label">{traced({ filter: `client:${quoted(call.label)}` }, call.label)}</Fact>}
        <Fact name="Session">
          {session === null ? "none" : current ? <Link href={`/clients/${encodeURIComponent(session)}`}>{session}</Link> : session}
        </Fact>
        <Fact name="Protocol">
          <EraBadge era={call.era} revision={call.revision} /> {call.revision} <span className="quiet">over {call.transport}</span>
        </Fact>
        <Fact name="Request id">
          <TypedValue value={call.request_id} />
        </Fact>
        <Fact name="Progress token">{call.progress_token === null ? "none given" : <TypedValue value={call.progress_token} />}</Fact>
        <Fact name="Request">{traced({ filter: `exchange:${call.exchange}` }, call.exchange)}</Fact>
        <Fact name="Started">
          <Time at={call.started_at} look="both" />
        </Fact>
        <Fact name="Entry">{traced({ at: call.seq }, `#${call.seq} of run ${call.run}`)}</Fact>
        <Fact name="Task">{task === null ? "none" : <Link href={`/calls/tasks/${encodeURIComponent(task)}`}>{task}</Link>}</Fact>
      </Facts>
    </Panel>
  );
}

/** How long it took, or has taken so far. */
export function Took({ call }: { call: CallRow }) {
  const end = useEnd();
  return call.outcome === null ? <Running from={call.started_at} until={end} /> : <Duration ms={call.duration_ms} />;
}

function Came({ call }: { call: CallRow }) {
  const running = call.outcome === null;
  const state = stateOfCall(call, useEnded());
  return (
    <Panel title="What came of it">
      <Facts>
        <Fact name="Outcome">
          <StatusBadge status={state} />
        </Fact>
        <Fact name="Done">{running ? "not yet" : String(call.done)}</Fact>
        <Fact name="Steps">
          {call.steps_done === null ? (
            "none reported"
          ) : (
            <ProgressBar label="steps" done={call.steps_done} total={call.steps_total} status={state} />
          )}
        </Fact>
        <Fact name={running ? "Running for" : "Duration"}>
          <Took call={call} />
        </Fact>
        <Fact name="Answered">{call.answered ? "yes" : running ? "not yet" : unanswered(call.outcome ?? "")}</Fact>
        <Fact name="Answer received">{call.answer_delivered ? "yes: a socket took all of it" : running ? "not yet" : "no"}</Fact>
      </Facts>
    </Panel>
  );
}

function Cancelled({ call, entries }: { call: CallRow; entries: readonly Viewed[] }) {
  if (call.cancelled_how === null) {
    return (
      <Panel title="Cancellation">
        <p className="quiet">{notCancelled(call, entries)}</p>
      </Panel>
    );
  }
  return (
    <Panel title="Cancellation">
      <Cancellation how={call.cancelled_how} reason={call.cancel_reason} latency={call.cancel_latency_ms} after={sentAfterCancel(entries)} />
    </Panel>
  );
}

/** The row names who cancelled only when the work has stopped. */
function notCancelled(call: CallRow, entries: readonly Viewed[]): string {
  const asked = entries.findLast((entry) => entry.kind === "call.cancelled");
  if (call.outcome !== null) return "It was not cancelled.";
  return asked === undefined ? "It was not asked to stop." : `Asked to stop ${asked.view.cancelled_how}; the work has not stopped yet.`;
}

function Delivered({ call }: { call: CallRow }) {
  return (
    <Panel title="Messages beside the answer">
      <Facts>
        <Fact name="Sent">{call.emitted}</Fact>
        <Fact name="Received">{call.delivered}</Fact>
        <Fact name="Not received">{call.emitted - call.delivered}</Fact>
        <Fact name="Coalesced">
          {call.coalesced} <span className="quiet">merged into later ones</span>
        </Fact>
      </Facts>
    </Panel>
  );
}

interface DeadlinesProps {
  call: CallRow;
  entries: readonly Viewed[];
  /** Whether Tool hosts shows the run of this call. */
  current: boolean;
}

/** How long the call might be silent and last, what moved that, what passed, and which tool host did the work. */
function Deadlines({ call, entries, current }: DeadlinesProps) {
  const dispatch = dispatchOf(entries);
  return (
    <Panel title="Deadlines">
      {dispatch === null ? <p className="quiet">{none(call)}</p> : <Known dispatch={dispatch} current={current} />}
    </Panel>
  );
}

function none(call: CallRow): string {
  if (call.task !== null) return "A task has none: its time to live bounds it.";
  return "None known: the tool never waits, or what tells of them was pushed out of the event log.";
}

function Known({ dispatch, current }: { dispatch: Dispatch; current: boolean }) {
  const { sent, expired } = dispatch;
  const limits = sent ?? expired;
  return (
    <Facts>
      <Fact name="Idle">{limits === null ? UNKNOWN : `${formatLimit(limits.idle_ms)} without progress`}</Fact>
      <Fact name="Ceiling">{limits === null ? UNKNOWN : formatLimit(limits.ceiling_ms)}</Fact>
      <Fact name="Extended">{extended(dispatch)}</Fact>
      <Fact name="Passed">
        {expired === null ? "neither" : <Badge tone="bad">{expired.deadline === "ceiling" ? "ceiling" : "idle"}</Badge>}
        {expired !== null && ` after ${formatDuration(expired.elapsed_ms)}`}
      </Fact>
      <Fact name="Ran at">{sent === null ? UNKNOWN : <Where dispatch={sent} current={current} />}</Fact>
      {dispatch.cancelled !== null && <Fact name="Host told to stop">{acknowledged(dispatch)}</Fact>}
    </Facts>
  );
}

const UNKNOWN = "unknown: the entry that says it is gone";

/** By valid reports: every one of them moves the idle deadline. */
function extended({ extended: last, settled, expired }: Dispatch): string {
  const reports = settled?.reports ?? expired?.reports ?? last?.reports ?? 0;
  const times = reports === 0 ? "never: no valid progress" : `${counted(reports, "time")}, by progress`;
  const invalid = settled === null || settled.invalid === 0 ? "" : `; ${settled.invalid} invalid, without effect`;
  return `${times}${invalid}`;
}

function Where({ dispatch: { host, dispatch }, current }: { dispatch: NonNullable<Dispatch["sent"]>; current: boolean }) {
  if (host === null) return "this server";
  return (
    <>
      tool host {current ? <Link href={`/server/hosts?text=${encodeURIComponent(host)}`}>{host}</Link> : host}, as <code>{dispatch}</code>
    </>
  );
}

function acknowledged({ cancelled, stopped: end }: Dispatch): string {
  if (end === null) return `${cancelled?.view.cancelled_how}; it has not answered yet`;
  const late = end.late === 0 ? "" : `; ${counted(end.late, "late message")} dropped`;
  return `${stopped(end)}${late}`;
}
