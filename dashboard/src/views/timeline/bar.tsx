import { stateOf } from "~/words/states";
import { labelPlace } from "./label";
import type { Lane, Phase, Tick } from "./lane";
import type { Scale } from "./scale";
import styles from "./timeline.module.css";

interface BarProps {
  lane: Lane;
  scale: Scale;
  width: number;
  /** Where what goes on ends for the time being. */
  now: number;
}

export const LANE_HEIGHT = 28;
const TOP = 9;
const HEIGHT = 10;
// what is shorter can still be seen and pointed at
const LEAST = 3;

/** What fills a bar beside its colour, so that it can be told without it. */
function patternOf(state: string): string | null {
  if (state === "cancelled" || state === "disconnected" || state === "timed_out") return "url(#hatch)";
  if (stateOf(state).tone === "bad") return "url(#cross)";
  return state === "input_required" ? "url(#dots)" : null;
}

interface SegmentProps {
  from: number;
  to: number;
  state: string;
  look?: string | undefined;
}

function Segment({ from, to, state, look }: SegmentProps) {
  const place = { x: from, y: TOP, width: Math.max(LEAST, to - from), height: HEIGHT, rx: 2 };
  const pattern = patternOf(state);
  return (
    <>
      <rect {...place} className={`${styles["segment"]} ${look ?? styles[stateOf(state).tone]}`} />
      {pattern !== null && <rect {...place} fill={pattern} />}
    </>
  );
}

/** A lane in the span that `scale` shows. Its text is elsewhere: this is the picture alone. */
export function Bar({ lane, scale, width, now }: BarProps) {
  // far outside, lengths would be beyond what is drawn exactly
  const x: Scale = (at) => Math.min(width + 50, Math.max(-50, scale(at)));
  const end = x(lane.to ?? Math.max(now, lane.from));
  const stop = lane.cancelled === null ? end : Math.min(end, x(lane.cancelled.at));
  return (
    <svg width={width} height={LANE_HEIGHT} aria-hidden="true">
      {lane.kind === "stream" && <rect x={x(lane.from)} y={TOP + 4} width={Math.max(LEAST, end - x(lane.from))} height={2} className={styles["thread"]} />}
      {lane.phases.length === 0 && lane.kind !== "stream" && <Segment from={x(lane.from)} to={stop} state={lane.state} />}
      {lane.phases.map((phase) => (
        <PhaseBar key={phase.from} phase={phase} x={x} until={Math.min(stop, x(phase.to ?? now))} />
      ))}
      {lane.cancelled !== null && <Stopping from={x(lane.cancelled.at)} to={end} />}
      {lane.cancelled !== null && <Cause lane={lane} by={lane.cancelled.by} scale={scale} width={width} end={end} />}
      {lane.to === null && <path d={`M${end} ${TOP} l4 ${HEIGHT / 2} l-4 ${HEIGHT / 2}`} className={styles["open"]} />}
      <Ticks ticks={lane.ticks} scale={scale} width={width} over={lane.to !== null} />
    </svg>
  );
}

const LOOKS: Readonly<Record<string, string | undefined>> = { queued: styles["queued"], connected: styles["connected"] };

function PhaseBar({ phase, x, until }: { phase: Phase; x: Scale; until: number }) {
  return <Segment from={x(phase.from)} to={until} state={phase.status} look={LOOKS[phase.status]} />;
}

/** The moment of cancellation, and the time until the scope had exited. */
function Stopping({ from, to }: { from: number; to: number }) {
  return (
    <>
      <rect x={from} y={TOP + 2} width={Math.max(1, to - from)} height={HEIGHT - 4} className={styles["stopping"]} />
      <path d={`M${from} 2 V${LANE_HEIGHT - 2} M${from - 4} ${TOP + 1} l8 8 m0 -8 l-8 8`} className={styles["cancel"]} />
    </>
  );
}

interface CauseProps {
  lane: Lane;
  by: string;
  scale: Scale;
  width: number;
  /** Where the bar ends. */
  end: number;
}

// half of the sign of a cancellation
const SIGN = 4;

/** Who cancelled, beside all that is drawn of the lane. */
function Cause({ lane, by, scale, width, end }: CauseProps) {
  const text = `cancelled by ${by}`;
  const marks = lane.ticks.flatMap(({ at, delivered }) => [at, delivered ?? at]).map(scale);
  const to = Math.max(end, scale(lane.cancelled?.at ?? lane.from)) + SIGN;
  const place = labelPlace({ from: scale(lane.from) - SIGN, to: marks.reduce((a, b) => Math.max(a, b), to) }, width, text.length);
  if (place === null) return null;
  return (
    <text x={place.x} y={TOP + HEIGHT - 1} textAnchor={place.anchor} className={styles["cause"]}>
      {text}
    </text>
  );
}

interface TicksProps {
  ticks: readonly Tick[];
  scale: Scale;
  width: number;
  /** Nothing will be delivered any more. */
  over: boolean;
}

/** Emitted above the bar, delivered below it; what no socket took has a ring above. One at most for each pixel. */
function Ticks({ ticks, scale, width, over }: TicksProps) {
  const above = new Map<number, Tick>();
  const below = new Map<number, Tick>();
  for (const tick of ticks) {
    const emitted = Math.round(scale(tick.at));
    if (emitted >= 0 && emitted <= width) above.set(emitted, tick);
    const taken = tick.delivered === null ? -1 : Math.round(scale(tick.delivered));
    if (taken >= 0 && taken <= width) below.set(taken, tick);
  }
  return (
    <>
      {[...above].map(([x, tick]) => (
        <Emitted key={x} x={x} tick={tick} lost={over && tick.delivered === null && tick.what !== "unheard"} />
      ))}
      {[...below].map(([x, tick]) => (
        <path key={x} d={`M${x} ${TOP + HEIGHT + 2} v${tick.what === "answer" ? 6 : 4}`} className={styles[tick.what]} />
      ))}
    </>
  );
}

function Emitted({ x, tick, lost }: { x: number; tick: Tick; lost: boolean }) {
  if (lost) return <circle cx={x} cy={TOP - 4.5} r={2.5} className={styles["lost"]} />;
  if (tick.what === "unheard") return <path d={`M${x} ${TOP - 3} v2`} className={styles["unheard"]} />;
  return <path d={`M${x} ${TOP - 2} v${tick.what === "answer" ? -6 : -4}`} className={styles[tick.what]} />;
}
