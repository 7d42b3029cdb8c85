import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from "react";
import type { Span } from "~/trace/entry";
import type { Range } from "~/trace/use-trace";
import { Button } from "~/ui/button";
import { formatDuration, formatMoment } from "~/ui/time-format";
import { toneOfSpan } from "~/words/spans";
import styles from "./brush.module.css";

interface BrushProps {
  /** All that may be chosen from, oldest first. */
  spans: readonly Span[];
  range: Range | null;
  onRange: (range: Range | null) => void;
}

// columns of the picture
const COLUMNS = 200;
// less than this, as a share of the picture, is a click
const LEAST = 0.006;
// what an arrow key moves an edge by, as a share of the picture
const STEP = 0.01;

/** From where a pointer was dragged, and to where, as shares of the picture. */
interface Dragged {
  from: number;
  to: number;
}

const edgesOf = ({ from, to }: Dragged): [number, number] => (from < to ? [from, to] : [to, from]);

/** Where an event is in what it is on, as a share of the width. */
function place(event: PointerEvent): number {
  const { left, width } = event.currentTarget.getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - left) / Math.max(1, width)));
}

/** The whole time of a trace as a strip: how much began when, and which part of it is shown. Dragging chooses a part. */
export function Brush({ spans, range, onRange }: BrushProps) {
  const whole = useMemo(() => wholeOf(spans), [spans]);
  const bars = useMemo(() => (whole === null ? [] : barsOf(spans, whole)), [spans, whole]);
  // the next event may come before what this one changes is drawn
  const held = useRef<Dragged | null>(null);
  const [dragged, setDragged] = useState<Dragged | null>(null);
  const hold = (next: Dragged | null) => {
    held.current = next;
    setDragged(next);
  };
  if (whole === null) return null;
  const shareOf = (at: number) => Math.min(1, Math.max(0, (at - whole.from) / (whole.until - whole.from)));
  const timeOf = (share: number) => whole.from + share * (whole.until - whole.from);
  const begin = (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    hold({ from: place(event), to: place(event) });
  };
  const end = () => {
    const [from, until] = edgesOf(held.current ?? { from: 0, to: 0 });
    if (until - from >= LEAST) onRange({ from: timeOf(from), until: timeOf(until) });
    hold(null);
  };
  const [from, until] = dragged !== null ? edgesOf(dragged) : range === null ? [0, 1] : [shareOf(range.from), shareOf(range.until)];
  const move = (edge: "from" | "until", share: number) => {
    const [first, last] = edge === "from" ? [Math.min(share, until - LEAST), until] : [from, Math.max(share, from + LEAST)];
    onRange(first <= 0 && last >= 1 ? null : { from: timeOf(Math.max(0, first)), until: timeOf(Math.min(1, last)) });
  };
  return (
    <div className={styles["brush"]} role="group" aria-label="Time shown">
      <div
        className={styles["strip"]}
        title="Drag to show a part of the time; a double click shows all of it"
        onPointerDown={begin}
        onPointerMove={(event) => held.current !== null && hold({ ...held.current, to: place(event) })}
        onPointerUp={end}
        onPointerCancel={() => hold(null)}
        onDoubleClick={() => onRange(null)}
      >
        <svg viewBox={`0 0 ${COLUMNS} 24`} preserveAspectRatio="none" aria-hidden="true">
          <path d={bars.map(({ x, all }) => `M${x + 0.5} 24 v${-all}`).join("")} className={styles["all"]} />
          <path d={bars.map(({ x, bad }) => (bad === 0 ? "" : `M${x + 0.5} 24 v${-bad}`)).join("")} className={styles["bad"]} />
        </svg>
        <span className={styles["outside"]} style={{ left: 0, width: `${from * 100}%` }} />
        <span className={styles["outside"]} style={{ right: 0, width: `${(1 - until) * 100}%` }} />
        <Edge name="Shown from" at={from} text={formatMoment(timeOf(from))} onMove={(share) => move("from", share)} />
        <Edge name="Shown until" at={until} text={formatMoment(timeOf(until))} onMove={(share) => move("until", share)} />
      </div>
      <span className={styles["words"]}>
        {range === null ? `${formatMoment(whole.from)}, ${formatDuration((whole.until - whole.from) * 1000)}` : `${formatMoment(range.from)}, ${formatDuration((range.until - range.from) * 1000)} of ${formatDuration((whole.until - whole.from) * 1000)}`}{" "}
        {range !== null && (
          <Button small onClick={() => onRange(null)}>
            All of the time
          </Button>
        )}
      </span>
    </div>
  );
}

interface EdgeProps {
  name: string;
  /** As a share of the picture. */
  at: number;
  text: string;
  onMove: (share: number) => void;
}

/** An edge of the part that is shown, for the keyboard. */
function Edge({ name, at, text, onMove }: EdgeProps) {
  const press = (event: KeyboardEvent) => {
    const next = new Map(Object.entries({ ArrowLeft: at - STEP, ArrowRight: at + STEP, PageDown: at - 10 * STEP, PageUp: at + 10 * STEP, Home: 0, End: 1 })).get(event.key);
    if (next === undefined) return;
    event.preventDefault();
    onMove(next);
  };
  return (
    <span
      role="slider"
      tabIndex={0}
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(at * 100)}
      aria-valuetext={text}
      className={styles["edge"]}
      style={{ left: `${at * 100}%` }}
      onKeyDown={press}
    />
  );
}

/** From the first beginning to the last moment that something began or ended in; null for nothing. */
function wholeOf(spans: readonly Span[]): Range | null {
  let [from, until] = [Number.POSITIVE_INFINITY, 0];
  for (const span of spans) {
    from = Math.min(from, span.from);
    until = Math.max(until, span.from, span.until ?? 0);
  }
  // so that a single moment has a place in it
  return spans.length === 0 ? null : { from, until: Math.max(until, from + 0.001) };
}

function barsOf(spans: readonly Span[], { from, until }: Range): readonly { x: number; all: number; bad: number }[] {
  const counts = new Map<number, { all: number; bad: number }>();
  for (const span of spans) {
    const x = Math.min(COLUMNS - 1, Math.floor(((span.from - from) / (until - from)) * COLUMNS));
    const count = counts.get(x) ?? { all: 0, bad: 0 };
    counts.set(x, { all: count.all + 1, bad: count.bad + Number(toneOfSpan(span) === "bad") });
  }
  const most = [...counts.values()].reduce((max, { all }) => Math.max(max, all), 1);
  // few can be seen beside many: by the root
  const high = (count: number) => (count === 0 ? 0 : Math.max(3, 22 * Math.sqrt(count / most)));
  return [...counts].map(([x, { all, bad }]) => ({ x, all: high(all), bad: high(bad) }));
}
