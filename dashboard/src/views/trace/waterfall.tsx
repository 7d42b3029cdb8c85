import { createContext, type KeyboardEvent, type PointerEvent, use, useMemo, useRef, useState } from "react";
import { isAnswer, progressOf, type Span, type Viewed } from "~/trace/entry";
import { useTheFeed } from "~/trace/feed";
import { type Range, useEnd, useEnded } from "~/trace/use-trace";
import type { Tone } from "~/ui/badge";
import { Button } from "~/ui/buttons";
import { useNow } from "~/ui/time";
import { formatClock, formatDuration, formatMoment } from "~/ui/time-format";
import { toneOfEnding } from "~/words/spans";
import { type Row, spanOf } from "./rows";
import styles from "./waterfall.module.css";

interface BrushProps {
  /** All that may be chosen from, oldest first. */
  spans: readonly Span[];
  range: Range | null;
  onRange: (range: Range | null) => void;
}

// columns of the picture
const COLUMNS = 200;
// less than this, as a share of the picture, is a click
const NARROWEST = 0.006;
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
  const momentOf = (share: number) => whole.from + share * (whole.until - whole.from);
  const begin = (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    hold({ from: place(event), to: place(event) });
  };
  const end = () => {
    const [from, until] = edgesOf(held.current ?? { from: 0, to: 0 });
    if (until - from >= NARROWEST) onRange({ from: momentOf(from), until: momentOf(until) });
    hold(null);
  };
  const [from, until] = dragged !== null ? edgesOf(dragged) : range === null ? [0, 1] : [shareOf(range.from), shareOf(range.until)];
  const move = (edge: "from" | "until", share: number) => {
    const [first, last] = edge === "from" ? [Math.min(share, until - NARROWEST), until] : [from, Math.max(share, from + NARROWEST)];
    onRange(first <= 0 && last >= 1 ? null : { from: momentOf(Math.max(0, first)), until: momentOf(Math.min(1, last)) });
  };
  return (
    <div className={`${styles["brush"]} strip row unprinted`} role="group" aria-label="Time shown">
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
        <Edge name="Shown from" at={from} text={formatMoment(momentOf(from))} onMove={(share) => move("from", share)} />
        <Edge name="Shown until" at={until} text={formatMoment(momentOf(until))} onMove={(share) => move("until", share)} />
      </div>
      <span className="aside">
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
    counts.set(x, { all: count.all + 1, bad: count.bad + Number(toneOfEnding(span.row.ending) === "bad") });
  }
  const most = [...counts.values()].reduce((max, { all }) => Math.max(max, all), 1);
  // few can be seen beside many: by the root
  const high = (count: number) => (count === 0 ? 0 : Math.max(3, 22 * Math.sqrt(count / most)));
  return [...counts].map(([x, { all, bad }]) => ({ x, all: high(all), bad: high(bad) }));
}

/** The time that the waterfall shows; null where there is nothing to show. */
export const ScaleContext = createContext<Range | null>(null);

// so that the bar of one request of a millisecond does not fill the column
const LEAST = 0.01;
// behind the last moment, for what goes on
const MARGIN = 0.04;

/** The time of the rows in view, or the range that was chosen; and what is to be called with the rows in view. */
export function useScale(rows: readonly Row[], range: Range | null): [Range | null, (first: number, last: number) => void] {
  const [view, setView] = useState<readonly [number, number]>([0, 0]);
  const onView = useMemo(() => (first: number, last: number) => setView((before) => (before[0] === first && before[1] === last ? before : [first, last])), []);
  const scale = useMemo(() => range ?? timeOf(rows.slice(view[0], view[1] + 1).flatMap((row) => spanOf(row) ?? [])), [rows, view, range]);
  return [scale, onView];
}

/** From the beginning of the first to the end of the last; what goes on, as a stream does for hours, counts with its beginning. */
function timeOf(spans: readonly Span[]): Range | null {
  if (spans.length === 0) return null;
  const from = spans.reduce((least, span) => Math.min(least, span.from), Number.POSITIVE_INFINITY);
  const until = spans.reduce((most, { from: began, until: ended, row }) => Math.max(most, row.ending.state === "ended" || row.ending.state === "open" ? began : (ended ?? began)), from + LEAST);
  return { from, until: until + (until - from) * MARGIN };
}

/** Where a moment lies, in percent of the width; what lies outside is put to the edge. */
const placeIn = ({ from, until }: Range, at: number) => Math.min(100, Math.max(0, ((at - from) / (until - from)) * 100));

/** The first and the last moment that the column shows. */
export function WaterfallAxis() {
  const scale = use(ScaleContext);
  if (scale === null) return null;
  return (
    <span className={styles["axis"]}>
      <span>{formatClock(scale.from)}</span>
      <span>+{formatDuration((scale.until - scale.from) * 1000)}</span>
    </span>
  );
}

/** When a request began and ended, when its work did, and each message on its way. */
export function Waterfall({ span }: { span: Span }) {
  const scale = use(ScaleContext);
  const { trace } = useTheFeed();
  if (scale === null || span.from > scale.until) return null;
  const { run, row } = span;
  return <Bars span={span} scale={scale} entries={trace.entriesOf(run, row.exchange, row.call)} />;
}

interface BarsProps {
  span: Span;
  scale: Range;
  entries: readonly Viewed[];
}

function Bars({ span, scale, entries }: BarsProps) {
  const { row } = span;
  const zero = span.from - row.began.mono;
  const [clock, logEnd] = [useNow(), useEnd()];
  const now = logEnd ?? clock;
  const open = logEnd === null ? "open" : "cut";
  const time = (moment: { mono: number } | null) => (moment === null ? null : moment.mono + zero);
  const end = time(row.ended) ?? Math.max(now, span.from);
  const stream = row.ending.state === "open" || row.ending.state === "ended";
  const tone = toneOfEnding(span.row.ending);
  const [began, cancelled, stopped] = [time(row.work?.began ?? null), time(row.work?.cancelled ?? null), time(row.work?.ended ?? null)];
  return (
    <span className={styles["bars"]} title={textOf(span, logEnd !== null)}>
      <Bar scale={scale} from={span.from} until={end} tone={tone} look={stream ? "stream" : began === null ? "solid" : "wait"} open={row.ended === null ? open : null} />
      {began !== null && <Bar scale={scale} from={began} until={cancelled ?? stopped ?? now} tone={tone} look="solid" open={cancelled === null && stopped === null ? open : null} />}
      {cancelled !== null && <Bar scale={scale} from={cancelled} until={stopped ?? now} tone={tone} look="stopping" open={stopped === null ? open : null} />}
      {marksOf(entries, scale, zero).map(({ at, look }) => (
        <span key={`${at} ${look}`} className={`${styles["tick"]} ${styles[look]}`} style={{ left: `${at}%` }} />
      ))}
      {cancelled !== null && cancelled >= scale.from && cancelled <= scale.until && (
        <span className={styles["cancel"]} style={{ left: `${placeIn(scale, cancelled)}%` }}>
          ✕
        </span>
      )}
    </span>
  );
}

interface BarProps {
  scale: Range;
  from: number;
  until: number;
  tone: Tone;
  look: "solid" | "wait" | "stream" | "stopping";
  /** How its right end looks where it goes on, or the log has ended before it. */
  open: "open" | "cut" | null;
}

function Bar({ scale, from, until, tone, look, open }: BarProps) {
  if (until < scale.from || from > scale.until) return null;
  const [left, right] = [placeIn(scale, from), placeIn(scale, until)];
  return <span className={`${styles["bar"]} ${styles[look]} ${open === null ? "" : styles[open]}`} data-tone={tone} style={{ left: `${left}%`, width: `${Math.max(0, right - left)}%` }} />;
}

interface Mark {
  /** In percent. */
  at: number;
  look: "received" | "sent" | "answer";
}

// two marks closer than this look like one, in percent
const APART = 0.6;

/** The messages to the client: those that it received are filled, the others hollow. One at most in the width of a mark. */
function marksOf(entries: readonly Viewed[], scale: Range, zero: number): readonly Mark[] {
  const found = new Map<number, Mark>();
  for (const entry of entries) {
    const at = entry.mono + zero;
    const shown = progressOf(entry) !== null || (entry.kind === "message.emitted" && (entry.rpc === "request" || isAnswer(entry)));
    if (!shown || at < scale.from || at > scale.until) continue;
    const look = entry.view.delivered === null ? "sent" : isAnswer(entry) ? "answer" : "received";
    const left = placeIn(scale, at);
    found.set(Math.round(left / APART), { at: left, look });
  }
  return [...found.values()];
}

function textOf({ from, until, row }: Span, logEnded: boolean): string {
  const whole = until === null ? goesOn(logEnded) : `ended after ${formatDuration((until - from) * 1000)}`;
  const { work } = row;
  const task = work?.task == null || work.ended === null ? "" : `; the work of its task ended after ${formatDuration((work.ended.mono - work.began.mono) * 1000)}`;
  return `began ${formatClock(from)}, ${whole}${task}`;
}

const goesOn = (logEnded: boolean) => (logEnded ? "open at the end of the log" : "goes on");

const SAMPLES: readonly (readonly [string, string])[] = [
  ["wait", "the request, from its first byte to its end"],
  ["solid", "the work for it; of a task, also behind the request"],
  ["stopping", "asked to stop, and not yet stopped"],
  ["stream", "an event stream that is no answer"],
];
const TICKS: readonly (readonly [string, string])[] = [
  ["received", "a message that the client received"],
  ["sent", "a message that no socket has taken"],
  ["answer", "the answer"],
];

/** What the marks of the waterfall mean, drawn as they are. */
export function Legend() {
  const sample = { left: "10%", width: "80%" };
  const ended = useEnded();
  const open = ended ? "cut" : "open";
  return (
    <dl className={styles["legend"]}>
      {[...SAMPLES, [open, goesOn(ended)] as const].map(([look, text]) => (
        <div key={look}>
          <dt>
            <span className={styles["bars"]}>
              <span className={`${styles["bar"]} ${look === open ? styles["solid"] : ""} ${styles[look]}`} data-tone="info" style={sample} />
            </span>
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
      {TICKS.map(([look, text]) => (
        <div key={look}>
          <dt>
            <span className={styles["bars"]}>
              <span className={`${styles["tick"]} ${styles[look]}`} style={{ left: "50%" }} />
            </span>
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
      <div>
        <dt>
          <span className={styles["bars"]}>
            <span className={styles["cancel"]} style={{ left: "50%" }}>
              ✕
            </span>
          </span>
        </dt>
        <dd>the moment of a cancellation</dd>
      </div>
    </dl>
  );
}
