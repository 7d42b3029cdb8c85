import { scalarText } from "~/protocol/json";
import type { DispatchExpired, DispatchExtended, DispatchSent, DispatchSettled, DispatchStopped, Entry, HostRegistered } from "~/protocol/schema";
import { formatDuration, formatSeconds } from "~/ui/time-format";
import { causeOf, stateOf } from "./states";
import { cameFrom, counted } from "./text";

/** A time that somebody set: whole seconds are said as such. */
export function formatLimit(ms: number): string {
  return ms % 1000 === 0 ? formatSeconds(ms / 1000) : formatDuration(ms);
}

const quoted = (text: string | null) => (text === null ? "" : ` ${scalarText(text)}`);

/** What an entry says of a dispatch or of a tool host, in plain words; null for any other one, and for a message. */
export function describeDispatch(entry: Entry): string | null {
  switch (entry.kind) {
    case "dispatch.sent":
      return `${sentTo(entry)}, idle deadline ${formatLimit(entry.idle_ms)}, ceiling ${formatLimit(entry.ceiling_ms)}`;
    case "dispatch.extended":
      return `by progress, ${counted(entry.reports, "report")} so far; ${nextDeadline(entry)}`;
    case "dispatch.expired":
      return `${passed(entry)}, after ${formatDuration(entry.elapsed_ms)} and ${counted(entry.reports, "report")}`;
    case "dispatch.settled":
      return settled(entry);
    case "dispatch.cancelled":
      return `host ${entry.host} is told to stop ${entry.dispatch}: ${causeOf(entry.by)}${quoted(entry.reason)}`;
    case "dispatch.stopped":
      return `${stopped(entry)}${entry.late === 0 ? "" : `; ${counted(entry.late, "late message")} dropped`}`;
    case "dispatch.late":
      return `host ${entry.host} sent ${LATE[entry.what] ?? entry.what} for ${entry.dispatch}, which is over; dropped`;
    default:
      return describeHost(entry);
  }
}

const LATE: Readonly<Record<string, string>> = { progress: "progress", result: "a result", error: "an error" };

function sentTo({ host, dispatch, tool }: DispatchSent): string {
  return host === null ? `to ${tool} of this server` : `to host ${host} as ${dispatch}`;
}

function nextDeadline({ deadline, due_ms }: DispatchExtended): string {
  return `the ${deadline === "ceiling" ? "ceiling" : "idle deadline"} is next, ${formatLimit(due_ms)} after the start`;
}

function passed({ deadline, idle_ms, ceiling_ms }: DispatchExpired): string {
  return deadline === "ceiling" ? `the ceiling of ${formatLimit(ceiling_ms)} has passed` : `silent for ${formatLimit(idle_ms)}, the idle deadline`;
}

function settled(entry: DispatchSettled): string {
  const progress = [
    counted(entry.reports, "report"),
    `${entry.sent} sent to the client`,
    ...(entry.coalesced === 0 ? [] : [`${entry.coalesced} coalesced`]),
    ...(entry.invalid === 0 ? [] : [`${entry.invalid} invalid`]),
  ];
  return `${stateOf(entry.outcome).label} after ${formatDuration(entry.elapsed_ms)}, ${progress.join(", ")}`;
}

/** What became of a cancelled dispatch at its host. */
export function stopped({ host, dispatch, how, after_ms }: DispatchStopped): string {
  const after = formatDuration(after_ms);
  switch (how) {
    case "acknowledged":
      return `host ${host} has stopped ${dispatch}, ${after} after tool.cancel`;
    case "answered":
      return `host ${host} did not stop ${dispatch} but came to its end, ${after} after tool.cancel`;
    case "unanswered":
      return `host ${host} has not said in ${after} that ${dispatch} has stopped; its place is given back`;
    case "never_sent":
      return `${dispatch} was still waiting here; host ${host} never heard of it`;
    case "host_gone":
      return `host ${host} was gone before it said that ${dispatch} has stopped`;
    default:
      return `${dispatch} of host ${host}: ${how}`;
  }
}

function describeHost(entry: Entry): string | null {
  switch (entry.kind) {
    case "host.connected":
      return `${entry.connection} ${cameFrom(entry)}, not registered yet`;
    case "host.registered":
      return registered(entry);
    case "host.updated":
      return `${entry.host} offers ${counted(entry.tools.length, "tool")} now: ${entry.tools.join(", ")}`;
    case "host.misuse":
      return `${entry.connection}, ${entry.what}: ${entry.detail}`;
    case "host.closed":
      return [
        `${entry.host ?? "a host without a name"} (${entry.connection})`,
        `by ${causeOf(entry.by)}`,
        ...(entry.code === null ? [] : [`code ${entry.code}`]),
        ...(entry.failed === 0 ? [] : [`${counted(entry.failed, "call")} failed with it`]),
        ...(entry.late === 0 ? [] : [`${counted(entry.late, "late message")} dropped in all`]),
      ].join(", ");
    default:
      return null;
  }
}

function registered({ connection, host, version, library, tools, replaced }: HostRegistered): string {
  const what = [host, version, library === null ? null : `(${library})`].filter((part) => part !== null).join(" ");
  const before = replaced === null ? "" : `, in place of ${replaced}`;
  return `${connection} is ${what}${before}, with ${counted(tools.length, "tool")}: ${tools.join(", ")}`;
}

type Of<Kind extends Entry["kind"]> = Extract<Entry, { kind: Kind }>;

/** What the entries of a call tell of its deadlines, and of the host that ran it. */
export interface Dispatch {
  sent: Of<"dispatch.sent"> | null;
  /** The last extension that is noted: there may have been more since. */
  extended: Of<"dispatch.extended"> | null;
  expired: Of<"dispatch.expired"> | null;
  settled: Of<"dispatch.settled"> | null;
  cancelled: Of<"dispatch.cancelled"> | null;
  stopped: Of<"dispatch.stopped"> | null;
}

/** The dispatch of a call by its evidence; null where there is nothing of one. */
export function dispatchOf(entries: readonly Entry[]): Dispatch | null {
  const last = <Kind extends Entry["kind"]>(kind: Kind) => (entries.findLast((entry) => entry.kind === kind) ?? null) as Of<Kind> | null;
  const found: Dispatch = {
    sent: last("dispatch.sent"),
    extended: last("dispatch.extended"),
    expired: last("dispatch.expired"),
    settled: last("dispatch.settled"),
    cancelled: last("dispatch.cancelled"),
    stopped: last("dispatch.stopped"),
  };
  return Object.values(found).every((entry) => entry === null) ? null : found;
}
