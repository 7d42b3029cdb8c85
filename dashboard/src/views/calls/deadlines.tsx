import { Link } from "wouter";
import type { CallRow, Entry } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import { Fact, Facts } from "~/ui/key-values";
import { Panel } from "~/ui/panel";
import { formatDuration } from "~/ui/time-format";
import { counted } from "~/words/counted";
import { type Dispatch, dispatchOf, formatLimit, stopped } from "~/words/dispatches";
import { causeOf } from "~/words/states";
import styles from "./calls.module.css";

interface DeadlinesProps {
  call: CallRow;
  entries: readonly Entry[];
  /** Whether Tool hosts shows the run of this call. */
  current: boolean;
}

/** How long the call might be silent and last, what moved that, what passed, and which tool host did the work. */
export function Deadlines({ call, entries, current }: DeadlinesProps) {
  const dispatch = dispatchOf(entries);
  return (
    <Panel title="Deadlines">
      {dispatch === null ? <p className={styles["quiet"]}>{none(call)}</p> : <Known dispatch={dispatch} current={current} />}
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
  if (end === null) return `because of ${causeOf(cancelled?.by ?? "")}; it has not answered yet`;
  const late = end.late === 0 ? "" : `; ${counted(end.late, "late message")} dropped`;
  return `${stopped(end)}${late}`;
}
