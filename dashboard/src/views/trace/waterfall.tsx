import { type CSSProperties, createContext, use, useMemo, useState } from "react";
import type { Span, Viewed } from "~/trace/entry";
import { isAnswer, progressOf } from "~/trace/facts";
import { useTheFeed } from "~/trace/use-feed";
import type { Range } from "~/trace/use-trace";
import type { Tone } from "~/ui/badge";
import { useNow } from "~/ui/time";
import { formatClock, formatDuration } from "~/ui/time-format";
import { toneOfSpan } from "~/words/spans";
import { type Row, spanOf } from "./rows";
import styles from "./waterfall.module.css";

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
  const now = useNow();
  const time = (moment: { mono: number } | null) => (moment === null ? null : moment.mono + zero);
  const end = time(row.ended) ?? Math.max(now, span.from);
  const stream = row.ending.state === "open" || row.ending.state === "ended";
  const tone = toneOfSpan(span);
  const [began, cancelled, stopped] = [time(row.work?.began ?? null), time(row.work?.cancelled ?? null), time(row.work?.ended ?? null)];
  return (
    <span className={styles["bars"]} title={textOf(span)}>
      <Bar scale={scale} from={span.from} until={end} tone={tone} look={stream ? "stream" : began === null ? "solid" : "wait"} open={row.ended === null} />
      {began !== null && <Bar scale={scale} from={began} until={cancelled ?? stopped ?? now} tone={tone} look="solid" open={cancelled === null && stopped === null} />}
      {cancelled !== null && <Bar scale={scale} from={cancelled} until={stopped ?? now} tone={tone} look="stopping" open={stopped === null} />}
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
  /** Whether it goes on. */
  open: boolean;
}

function Bar({ scale, from, until, tone, look, open }: BarProps) {
  if (until < scale.from || from > scale.until) return null;
  const [left, right] = [placeIn(scale, from), placeIn(scale, until)];
  const style = { left: `${left}%`, width: `${Math.max(0, right - left)}%`, "--tone": `var(--${tone})` } as CSSProperties;
  return <span className={`${styles["bar"]} ${styles[look]} ${open ? styles["open"] : ""}`} style={style} />;
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
    const place = placeIn(scale, at);
    found.set(Math.round(place / APART), { at: place, look });
  }
  return [...found.values()];
}

function textOf({ from, until, row }: Span): string {
  const whole = until === null ? "goes on" : `ended after ${formatDuration((until - from) * 1000)}`;
  const { work } = row;
  const task = work?.task == null || work.ended === null ? "" : `; the work of its task ended after ${formatDuration((work.ended.mono - work.began.mono) * 1000)}`;
  return `began ${formatClock(from)}, ${whole}${task}`;
}

const SAMPLES: readonly (readonly [string, string])[] = [
  ["wait", "the request, from its first byte to its end"],
  ["solid", "the work for it; of a task, also behind the request"],
  ["stopping", "asked to stop, and not yet stopped"],
  ["stream", "an event stream that is no answer"],
  ["open", "goes on"],
];
const TICKS: readonly (readonly [string, string])[] = [
  ["received", "a message that the client received"],
  ["sent", "a message that no socket has taken"],
  ["answer", "the answer"],
];

/** What the marks of the waterfall mean, drawn as they are. */
export function Legend() {
  const sample = { left: "10%", width: "80%", "--tone": "var(--info)" } as CSSProperties;
  return (
    <dl className={styles["legend"]}>
      {SAMPLES.map(([look, text]) => (
        <div key={look}>
          <dt>
            <span className={styles["bars"]}>
              <span className={`${styles["bar"]} ${styles[look === "open" ? "solid" : look]} ${look === "open" ? styles["open"] : ""}`} style={sample} />
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
