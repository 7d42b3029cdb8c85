import type { CallRow } from "~/protocol/schema";
import type { Column } from "~/ui/grid-columns";
import { Duration, Running, Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { StatusBadge, TransportBadge } from "~/widgets/badges";
import { ClientMark } from "~/widgets/client-mark";
import { FilterBy } from "~/widgets/filter-by";
import { ProgressBar } from "~/widgets/progress-bar";
import { TypedValue } from "~/widgets/typed-value";
import { CallMarks } from "~/widgets/use-call-findings";
import { clientOf } from "~/words/client-name";
import { causeOf } from "~/words/states";
import { type Line, isDivider, oneLine, stateOfCall } from "./calls";
import styles from "./calls.module.css";

type Of = (call: CallRow) => string | number | null;

/** A column that calls have, and lines between two runs of the server have not. */
const of = (column: Omit<Column<CallRow>, "sortBy">, by?: Of): Column<Line> => ({
  ...column,
  cell: (line: Line) => (isDivider(line) ? null : column.cell(line)),
  ...(by !== undefined && { sortBy: (line: Line) => (isDivider(line) ? undefined : by(line)) }),
});

/** The columns of the list of calls; what a phone has no room for is on the page of a call. */
export const CALL_COLUMNS: readonly Column<Line>[] = [
  of({ key: "started", head: "Started", width: { fit: [4, 9] }, cell: (call) => <Time at={call.started_at} /> }, (call) => call.started_at),
  of({ key: "tool", head: "Tool", width: { fit: [5, 14] }, cell: (call) => <FilterBy word="tool" value={call.tool}>{call.tool}</FilterBy> }, (call) => call.tool),
  of({ key: "outcome", head: "Outcome", width: { fit: [5, 9] }, cell: (call) => <FilterBy word="outcome" value={stateOfCall(call)}><StatusBadge status={stateOfCall(call)} /></FilterBy> }, stateOfCall),
  of({ key: "duration", head: "Took", width: { fit: [3.5, 7] }, align: "end", from: 26, cell: (call) => (call.outcome === null ? <Running from={call.started_at} /> : <Duration ms={call.duration_ms} />) }, (call) => call.duration_ms),
  of({ key: "client", head: "Client", width: { grow: 1, least: 7 }, from: 34, cell: (call) => <Client call={call} /> }, (call) => call.session),
  of(
    {
      key: "arguments",
      head: "Arguments",
      width: { grow: 2, least: 8 },
      from: 48,
      cell: (call) => (
        <>
          <CallMarks call={call} />
          <code title={oneLine(call.arguments)}>{oneLine(call.arguments)}</code>
        </>
      ),
    },
  ),
  of({ key: "token", head: "Token", title: "The progress token, with its JSON type", width: { fit: [3, 8] }, from: 72, cell: (call) => call.progress_token !== null && <TypedValue value={call.progress_token} /> }),
  of({ key: "steps", head: "Steps", width: "6rem", from: 56, cell: (call) => <Steps call={call} /> }, (call) => call.steps_done),
  of({ key: "cancelled", head: "Cancelled by", width: { fit: [4, 12] }, from: 64, cell: (call) => <CancelledBy call={call} /> }, (call) => call.cancelled_by),
  of({ key: "messages", head: "Received", title: "Messages beside the answer: how many the client received, of those sent", width: { fit: [4, 8] }, align: "end", from: 68, cell: (call) => <Messages call={call} /> }, (call) => call.delivered),
];

function Client({ call }: { call: CallRow }) {
  const name = (
    <>
      {call.session === null ? "unknown" : <ClientMark label={call.session} />} {call.label}
    </>
  );
  return (
    <span title={`${clientOf(call)}, ${call.revision} over ${call.transport}`}>
      {call.session === null ? name : <FilterBy word="session" value={call.session}>{name}</FilterBy>} <span className={styles["quiet"]}>{call.client_name || "no name given"}</span>{" "}
      {call.transport !== "http" && <TransportBadge transport={call.transport} short />}
    </span>
  );
}

function Steps({ call }: { call: CallRow }) {
  if (call.steps_done === null && call.outcome !== null) return null;
  return <ProgressBar label={`steps of call ${call.id}`} done={call.steps_done} total={call.steps_total} status={stateOfCall(call)} />;
}

function CancelledBy({ call }: { call: CallRow }) {
  if (call.cancelled_by === null) return null;
  return (
    <>
      <span className={styles["strong"]} title={call.cancel_reason ?? "no reason given"}>
        {causeOf(call.cancelled_by)}
      </span>
      {call.cancel_latency_ms !== null && <span title="until the work had stopped">, {formatDuration(call.cancel_latency_ms)}</span>}
    </>
  );
}

function Messages({ call }: { call: CallRow }) {
  if (call.emitted === 0) return null;
  const missing = call.emitted - call.delivered;
  return (
    <span title={missing === 0 ? undefined : `${missing} sent and not received`} className={missing === 0 ? undefined : styles["strong"]}>
      {call.delivered} of {call.emitted}
    </span>
  );
}
