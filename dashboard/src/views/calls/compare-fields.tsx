import type { ReactNode } from "react";
import type { CallRow } from "~/protocol/schema";
import { Duration, Time } from "~/ui/time";
import { StatusBadge } from "~/widgets/badges";
import { TypedValue } from "~/widgets/typed-value";
import { clientOf } from "~/words/client-name";
import { stateOfCall } from "./calls";
import { CompareTable } from "./compare-table";

const none = "–";
const ms = (value: number | null) => (value === null ? none : <Duration ms={value} />);
const typed = (value: string | number | null) => (value === null ? none : <TypedValue value={value} />);

/** Fields that tell any two calls apart. */
const OWN: readonly (readonly [string, (call: CallRow) => ReactNode])[] = [
  ["Call", (call) => call.id],
  ["Started", (call) => <Time at={call.started_at} look="both" />],
  ["Exchange", (call) => call.exchange],
  ["Task", (call) => call.task ?? none],
];

type Field = readonly [name: string, value: (call: CallRow) => string | number | boolean | null, shown?: (call: CallRow) => ReactNode];

const COMPARED: readonly Field[] = [
  ["Tool", (call) => call.tool],
  ["Toolset", (call) => call.toolset],
  ["Era", (call) => call.era],
  ["Revision", (call) => call.revision],
  ["Transport", (call) => call.transport],
  ["Client", clientOf],
  ["Session", (call) => call.session],
  ["Request id", (call) => call.request_id, (call) => typed(call.request_id)],
  ["Progress token", (call) => call.progress_token, (call) => typed(call.progress_token)],
  ["Became a task", (call) => call.task !== null],
  ["Outcome", stateOfCall, (call) => <StatusBadge status={stateOfCall(call)} />],
  ["Done", (call) => call.done],
  ["Steps done", (call) => call.steps_done],
  ["Steps total", (call) => call.steps_total],
  ["Duration", (call) => call.duration_ms, (call) => ms(call.duration_ms)],
  ["Cancelled by", (call) => call.cancelled_by],
  ["Cancel reason", (call) => call.cancel_reason],
  ["Cancel latency", (call) => call.cancel_latency_ms, (call) => ms(call.cancel_latency_ms)],
  ["Emitted", (call) => call.emitted],
  ["Delivered", (call) => call.delivered],
  ["Coalesced", (call) => call.coalesced],
  ["Answered", (call) => call.answered],
  ["Answer delivered", (call) => call.answer_delivered],
];

export function CompareFields({ a, b, only }: { a: CallRow; b: CallRow; only: boolean }) {
  const own = OWN.map(([name, shown]) => ({ name, a: shown(a), b: shown(b), mark: null }));
  const compared = COMPARED.map(([name, value, shown = (call: CallRow) => String(value(call) ?? none)]) => ({
    name,
    a: shown(a),
    b: shown(b),
    mark: value(a) === value(b) ? ("same" as const) : ("differs" as const),
  }));
  return <CompareTable label="Fields" head="Field" lines={[...own, ...compared]} only={only} />;
}
