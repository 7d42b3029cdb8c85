import type { CallRow } from "~/protocol/schema";
import type { Column } from "~/ui/data-table";
import { Duration, Running, Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { EraBadge, StatusBadge, TransportBadge } from "~/widgets/badges";
import { ClientMark } from "~/widgets/client-mark";
import { ProgressBar } from "~/widgets/progress-bar";
import { TypedValue } from "~/widgets/typed-value";
import { CallMarks } from "~/widgets/use-call-findings";
import { clientOf } from "~/words/client-name";
import { type Line, isDivider, oneLine, stateOfCall } from "./calls";
import styles from "./calls.module.css";

// those that fit on a phone; the page of a call has all others
const NARROW: Readonly<Record<string, string>> = { started: "6.8rem", tool: "minmax(5rem, 1fr)", outcome: "6.8rem" };

/** The columns of the list of calls, or of a narrow one. */
export function callColumns(narrow: boolean): Column<Line>[] {
  const columns = COLUMNS.filter(({ key }) => !narrow || NARROW[key] !== undefined);
  return columns.map(({ cell, width, ...rest }) => Object.assign(rest, { width: (narrow && NARROW[rest.key]) || width, cell: (line: Line) => (isDivider(line) ? null : cell(line)) }));
}

// one column takes what room is left: with two, the heads and the rows of a table that is wider than its page would not agree
const COLUMNS: readonly Column<CallRow>[] = [
  { key: "started", head: "Started", width: "6.8rem", cell: (call) => <Time at={call.started_at} /> },
  { key: "tool", head: "Tool", width: "8.4rem", cell: (call) => <span title={call.tool}>{call.tool}</span> },
  {
    key: "arguments",
    head: "Arguments",
    width: "minmax(6rem, 1fr)",
    cell: (call) => (
      <>
        <CallMarks call={call} />
        <code title={oneLine(call.arguments)}>{oneLine(call.arguments)}</code>
      </>
    ),
  },
  { key: "token", head: "Token", width: "5.4rem", cell: (call) => <Token call={call} /> },
  { key: "client", head: "Client", width: "9.6rem", cell: (call) => <Client call={call} /> },
  { key: "outcome", head: "Outcome", width: "6.8rem", cell: (call) => <StatusBadge status={stateOfCall(call)} /> },
  { key: "steps", head: "Steps", width: "6rem", cell: (call) => <Steps call={call} /> },
  { key: "cancelled", head: "Cancelled by", width: "9rem", cell: (call) => <CancelledBy call={call} /> },
  {
    key: "duration",
    head: "Duration",
    width: "4.6rem",
    align: "end",
    cell: (call) => (call.outcome === null ? <Running from={call.started_at} /> : <Duration ms={call.duration_ms} />),
  },
  { key: "messages", head: "Delivered", width: "5rem", align: "end", cell: (call) => <Messages call={call} /> },
];

function Client({ call }: { call: CallRow }) {
  return (
    <span className={styles["client"]} title={`${clientOf(call)}, ${call.revision} over ${call.transport}`}>
      <EraBadge era={call.era} revision={call.revision} />
      {call.transport !== "http" && <TransportBadge transport={call.transport} short />}
      <span className={styles["ellipsis"]}>
        {call.session === null ? "unknown" : <ClientMark label={call.session} />} {call.label !== null && `${call.label}: `}
        {call.client_name || "no name given"}
      </span>
    </span>
  );
}

function Token({ call }: { call: CallRow }) {
  if (call.progress_token === null) return <span className={styles["quiet"]}>none</span>;
  return <TypedValue value={call.progress_token} />;
}

function Steps({ call }: { call: CallRow }) {
  if (call.steps_done === null && call.outcome !== null) return <span className={styles["quiet"]}>none</span>;
  return (
    <ProgressBar label={`steps of call ${call.id}`} done={call.steps_done} total={call.steps_total} status={stateOfCall(call)} />
  );
}

function CancelledBy({ call }: { call: CallRow }) {
  if (call.cancelled_by === null) return null;
  return (
    <>
      <span className={styles["strong"]} title={call.cancel_reason ?? "no reason given"}>
        {call.cancelled_by}
      </span>
      {call.cancel_latency_ms !== null && (
        <span title="until the work had stopped">, {formatDuration(call.cancel_latency_ms)}</span>
      )}
    </>
  );
}

function Messages({ call }: { call: CallRow }) {
  if (call.emitted === 0) return <span className={styles["quiet"]}>none</span>;
  const missing = call.emitted - call.delivered;
  return (
    <span title={missing === 0 ? undefined : `${missing} emitted and not delivered`} className={missing === 0 ? undefined : styles["strong"]}>
      {call.delivered} of {call.emitted}
    </span>
  );
}
