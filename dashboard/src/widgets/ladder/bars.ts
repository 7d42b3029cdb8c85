import { scalarText } from "~/protocol/json";
import type { Entry } from "~/protocol/schema";
import { isAnswer } from "~/trace/evidence";
import type { Tone } from "~/ui/badge";
import { stateOf } from "~/words/states";
import { HostNames } from "./host-names";
import type { LaneKey } from "./steps";

/** How long something lasted on a lane: work on that of the server or of a tool host, an open event stream on that of the client. */
export interface Bar {
  key: string;
  lane: LaneKey;
  /** By the monotonic clock, in seconds; `to` is null while it goes on. */
  from: number;
  to: number | null;
  label: string;
  tone: Tone;
  /** Which of the bars beside each other on its lane, from 0. */
  depth: number;
}

type Begun = Omit<Bar, "depth">;

/** The bars that the entries tell of, by their beginnings. */
export function barsOf(entries: readonly Entry[]): Bar[] {
  const bars = new Map<string, Begun>();
  const hosts = new HostNames(entries);
  for (const entry of entries) {
    const begun = begunBy(entry, hosts);
    if (begun !== null) bars.set(begun.key, { ...begun, from: entry.mono, to: null });
    const over = endedBy(entry);
    const bar = over === null ? undefined : bars.get(over.key);
    // the server is done with a dispatch before its host is: what comes last counts
    if (bar !== undefined) Object.assign(bar, { to: entry.mono, tone: over?.tone ?? bar.tone });
  }
  return beside([...bars.values()]);
}

const dispatched = (call: string | null) => `dispatch ${call}`;

function begunBy(entry: Entry, hosts: HostNames): Omit<Begun, "from" | "to"> | null {
  switch (entry.kind) {
    case "call.started":
      return { key: `call ${entry.call}`, lane: "probe", label: `${entry.call} ${entry.tool ?? entry.method}`, tone: "info" };
    case "http.response":
      if (entry.content_type !== "text/event-stream" || entry.stream === null) return null;
      return { key: `exchange ${entry.exchange}`, lane: "client", label: `event stream ${entry.stream} in exchange ${entry.exchange}`, tone: "neutral" };
    case "dispatch.sent":
      if (entry.host === null) return null;
      return { key: dispatched(entry.call), lane: hosts.laneOf(entry), label: `${entry.tool} as ${scalarText(entry.dispatch)}`, tone: "info" };
    default:
      return null;
  }
}

function endedBy(entry: Entry): { key: string; tone?: Tone } | null {
  switch (entry.kind) {
    case "call.settled":
      return { key: `call ${entry.call}`, tone: stateOf(entry.outcome).tone };
    case "http.closed":
      return { key: `exchange ${entry.exchange}`, ...(entry.by !== "end of stream" && { tone: "warn" as const }) };
    case "dispatch.settled":
    case "dispatch.stopped":
      return { key: dispatched(entry.call), ...(entry.kind === "dispatch.settled" && { tone: stateOf(entry.outcome).tone }) };
    case "host.message":
      return entry.direction === "received" && isAnswer(entry) ? { key: dispatched(entry.call) } : null;
    default:
      return null;
  }
}

/** Bars of a lane that overlap stand beside each other. */
function beside(bars: readonly Begun[]): Bar[] {
  const taken = new Map<LaneKey, number[]>();
  return bars.map((bar) => {
    const ends = taken.get(bar.lane) ?? [];
    taken.set(bar.lane, ends);
    const free = ends.findIndex((end) => end <= bar.from);
    const depth = free === -1 ? ends.length : free;
    ends[depth] = bar.to ?? Number.POSITIVE_INFINITY;
    return { ...bar, depth };
  });
}
