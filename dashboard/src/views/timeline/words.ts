import { formatClock, formatDuration } from "~/ui/time-format";
import { stateOf } from "~/words/states";
import { type Lane, counted } from "./lane";

/** How long it took, or has taken until now. */
export function lasting(lane: Lane, now: number): string {
  const text = formatDuration(Math.max(0, (lane.to ?? now) - lane.from) * 1000);
  return lane.to === null ? `${text} so far` : text;
}

/** Who asked it to stop, when, and how long that took. */
export function cancellation(lane: Lane): string {
  if (lane.cancelled === null) return "";
  const { at, by, reason } = lane.cancelled;
  const exit = lane.to === null ? "its scope has not exited" : `its scope exited ${formatDuration(Math.max(0, lane.to - at) * 1000)} later`;
  return `by ${by} at +${formatDuration(Math.max(0, at - lane.from) * 1000)}${reason === null ? "" : ` (“${reason}”)`}, ${exit}`;
}

/** The messages of a lane, as far as their entries are at hand. */
export function messages(lane: Lane): string {
  const { emitted, delivered, progress } = counted(lane);
  const told = lane.facts["Messages"];
  if (emitted === 0 && progress === 0) return told ?? "none seen";
  return `${emitted} emitted, ${delivered} delivered${progress > 0 ? `, ${progress} progress reports` : ""}`;
}

/** All that is known of a lane, by name. */
export function factsOf(lane: Lane, client: string, now: number): [string, string][] {
  const facts: [string, string][] = [
    ["Client", client],
    ["Began", formatClock(lane.from)],
    [lane.to === null ? "Running" : "Took", lasting(lane, now)],
    ["Messages", messages(lane)],
  ];
  if (lane.cancelled !== null) facts.push(["Cancelled", cancellation(lane)]);
  const phase = lane.phases.at(-1);
  if (lane.kind === "stream" && phase !== undefined) facts.push(["Reader", phase.note]);
  return [...facts, ...Object.entries(lane.facts).filter(([name]) => name !== "Messages")];
}

/** One sentence for a screen reader. */
export function sentence(lane: Lane, now: number): string {
  const cancelled = lane.cancelled === null ? "" : `, cancelled ${cancellation(lane)}`;
  return `began ${formatClock(lane.from)}, ${lasting(lane, now)}, ${stateOf(lane.state).label}${cancelled}, messages: ${messages(lane)}`;
}
