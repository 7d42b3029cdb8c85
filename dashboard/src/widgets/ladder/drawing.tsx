import type { ReactNode } from "react";
import { isAnswer } from "~/trace/entry";
import type { Tone } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import type { Bar, Columns, Layout, Pace, Placed } from "./picture";
import { labelOf, timeOf } from "./rows";
import type { LaneKey, Step } from "./steps";

/** The colours and the typeface of a drawing. */
export interface Palette {
  surface: string;
  hover: string;
  chosen: string;
  text: string;
  quiet: string;
  line: string;
  accent: string;
  tones: Readonly<Record<Tone, string>>;
  font: string;
}

const TONES: readonly Tone[] = ["neutral", "info", "good", "warn", "bad", "violet"];

function paletteOf(colour: (token: string) => string, font: string): Palette {
  const tones = Object.fromEntries(TONES.map((tone) => [tone, colour(tone)])) as Record<Tone, string>;
  const [surface, hover, chosen, text, quiet, line, accent] = ["surface", "hover", "chosen", "text", "text-quiet", "line-strong", "accent"].map(colour) as [string, string, string, string, string, string, string];
  return { surface, hover, chosen, text, quiet, line, accent, tones, font };
}

/** The tokens of the page, whichever its theme is. */
export const SCREEN: Palette = paletteOf((token) => `var(--${token})`, "var(--mono)");

/** The colours of the light theme as they are, for a drawing that leaves the page. */
export function paper(): Palette {
  const probe = document.createElement("span");
  probe.style.colorScheme = "light";
  document.body.append(probe);
  const colour = (token: string) => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const palette = paletteOf(colour, "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace");
  probe.remove();
  return palette;
}

/** All that the parts of a picture are drawn by. */
export interface Scene {
  lanes: readonly LaneKey[];
  columns: Columns;
  layout: Layout;
  pace: Pace;
  palette: Palette;
  width: number;
  /** From where times are counted; undefined shows the wall clock. */
  origin: Step | undefined;
}

// a monospaced typeface is this wide for its size
const WIDE = 0.61;
const sizeOf = (width: number) => (width < 640 ? 11 : 12);

const xOf = ({ lanes, columns }: Scene, lane: LaneKey) => columns.xs[lanes.indexOf(lane)] ?? 0;

/** The lifelines in a part of the picture. */
export function Lifelines({ scene, top, bottom }: { scene: Scene; top: number; bottom: number }) {
  return scene.columns.xs.map((x) => <path key={x} d={`M${x} ${top} V${bottom}`} stroke={scene.palette.line} strokeWidth={1} />);
}

// so many bars beside each other can be told apart; further ones lie on the last
const DEEPEST = 5;
const BAR = 7;

/** The bars in a part of the picture. */
export function Bars({ scene, bars, top, bottom }: { scene: Scene; bars: readonly Bar[]; top: number; bottom: number }) {
  const { layout, palette } = scene;
  return bars.map((bar) => {
    const y1 = Math.max(top, layout.yOf(bar.from));
    const y2 = Math.min(bottom, bar.to === null ? layout.height : layout.yOf(bar.to));
    if (y1 > bottom || y2 < top) return null;
    // away from the arrows between the client and this server
    const shift = Math.min(bar.depth, DEEPEST) * BAR * (bar.lane === "client" ? -1 : 1);
    return (
      <rect key={bar.key} x={xOf(scene, bar.lane) + shift - 2.5} y={y1} width={5} height={Math.max(2, y2 - y1)} fill={palette.surface} stroke={palette.tones[bar.tone]} strokeDasharray={bar.to === null ? "3 2" : undefined}>
        <title>{bar.label}</title>
      </rect>
    );
  });
}

/** One row: its time, its arrow or mark, and its label. */
export function RowDrawing({ scene, placed }: { scene: Scene; placed: Placed }) {
  const { columns, palette, width } = scene;
  const [first] = placed.row.steps;
  const mark = first.from === first.to;
  const size = sizeOf(width);
  return (
    <>
      {placed.gap !== null && <Silence scene={scene} gap={placed.gap} />}
      {columns.time !== null && (
        <text x={columns.time} y={placed.y - 7} textAnchor="end" fill={palette.quiet} fontSize={11} fontFamily={palette.font}>
          {timeOf(placed.row, scene.origin)}
        </text>
      )}
      <LabelDrawing scene={scene} placed={placed} size={size}>
        {/* beside its label; where that is above all lanes, below it */}
        {mark ? <MarkDrawing scene={scene} step={first} y={placed.y - (columns.time === null ? 2 : 8)} /> : <Arrow scene={scene} placed={placed} />}
      </LabelDrawing>
    </>
  );
}

function Silence({ scene: { columns, palette }, gap }: { scene: Scene; gap: NonNullable<Placed["gap"]> }) {
  const [left = 0, right = left] = columns.xs;
  return (
    <>
      <path d={`M${left + 8} ${gap.y} H${right - 8}`} stroke={palette.line} strokeDasharray="1 5" />
      <text x={(left + right) / 2} y={gap.y + 4} textAnchor="middle" fill={palette.quiet} stroke={palette.surface} strokeWidth={6} paintOrder="stroke" fontSize={11} fontFamily={palette.font}>
        {formatDuration(gap.ms)} {gap.cut ? "of silence, shortened" : "later"}
      </text>
    </>
  );
}

function MarkDrawing({ scene, step, y }: { scene: Scene; step: Step; y: number }) {
  const { palette } = scene;
  const x = xOf(scene, step.from);
  const tone = palette.tones[step.tone];
  if (step.tone === "neutral" || step.tone === "info") return <circle cx={x} cy={y + 4} r={3.5} fill={palette.surface} stroke={tone} strokeWidth={1.5} />;
  return <path d={`M${x} ${y - 2} l6 6 l-6 6 l-6 -6 Z`} fill={tone} />;
}

// a delivery that took long leads down at most so far
const STEEPEST = 60;
// of an arrow to nowhere, so much is drawn
const LOST = 0.72;

function Arrow({ scene, placed: { row, y } }: { scene: Scene; placed: Placed }) {
  const { palette, layout, pace } = scene;
  const [step] = row.steps;
  const [x1, x2] = [xOf(scene, step.from), xOf(scene, step.to)];
  const sign = x2 > x1 ? 1 : -1;
  const { fate } = step;
  const arrives = fate === null || fate.what === "received";
  const slope = pace === "scale" && fate?.what === "received" ? Math.min(STEEPEST, Math.max(0, layout.yOf(fate.at) - y)) : 0;
  const from = x1 + 4 * sign;
  const to = arrives ? x2 - 4 * sign : x1 + (x2 - x1) * LOST;
  const colour = palette.tones[step.tone];
  const answer = isAnswer(step.entry);
  const dash = answer ? "6 3" : fate?.what === "not received yet" ? "2 4" : undefined;
  return (
    <g stroke={colour} fill="none" strokeWidth={1.5}>
      {row.open === false && <path d={`M${from} ${y - 3} H${to - 10 * sign} M${from} ${y + 3} H${to - 10 * sign}`} strokeWidth={1} opacity={0.5} />}
      <path d={`M${from} ${y} L${to} ${y + slope}`} strokeDasharray={dash} />
      {!arrives && fate.what !== "not received yet" ? (
        <path d={`M${to - 5} ${y - 5} l10 10 m0 -10 l-10 10`} strokeWidth={2} />
      ) : (
        <path d={`M${to - 8 * sign} ${y + slope - 4} L${to} ${y + slope} L${to - 8 * sign} ${y + slope + 4}`} fill={step.entry.kind !== "message.emitted" || answer ? colour : "none"} />
      )}
    </g>
  );
}

function cut(text: string, room: number): string {
  if (text.length <= room) return text;
  return room < 2 ? "" : `${text.slice(0, room - 1)}…`;
}

/** A text that is cut in the middle, so that its `end` stays; one that is too long for that is cut, too. */
export function cutBefore(end: string, text: string, room: number): string {
  if (text.length <= room || end === "" || room < LITTLE || text.length === end.length) return cut(text, room);
  const before = Math.max(LEAST, room - end.length - LINK.length);
  return `${cut(text.slice(0, text.length - end.length - LINK.length), before)}${LINK}${cut(end, room - before - LINK.length)}`;
}

const LINK = " · ";
// in less room than this, a beginning says more than a beginning and an end
const LITTLE = 22;
const LEAST = 10;

interface Place {
  x: number;
  anchor: "start" | "end";
  /** In characters. */
  room: number;
}

/** Where the label of a step stands, if it is `length` characters long. */
function labelPlace(scene: Scene, step: Step, length: number, wide: number): Place {
  const { columns } = scene;
  const [first = 0] = columns.xs;
  const lane = Math.min(xOf(scene, step.from), xOf(scene, step.to));
  // on a narrow screen each label has the whole width; its arrow is below it
  const narrow = columns.time === null;
  const x = (narrow ? first : lane) + 14;
  // no label crosses a lane: it ends before the next one, on a narrow screen before the last one
  const next = narrow ? columns.xs.at(-1) : columns.xs.find((each) => each > lane);
  const room = Math.floor(((next === undefined ? columns.right : next - 14) - x) / wide);
  // what happens on the last lane stands before it, unless there is room behind
  if (narrow || step.from !== step.to || next !== undefined || room >= Math.min(length, ENOUGH)) return { x, anchor: "start", room };
  return { x: lane - 14, anchor: "end", room: Math.floor((lane - 28 - (columns.xs.findLast((each) => each < lane) ?? 0)) / wide) };
}

// so much of a label says what it is about
const ENOUGH = 34;

interface LabelDrawingProps {
  scene: Scene;
  placed: Placed;
  size: number;
  /** The arrow or the mark, which stands before the ground of the label. */
  children: ReactNode;
}

function LabelDrawing({ scene, placed: { row, y }, size, children }: LabelDrawingProps) {
  const { columns, palette, origin } = scene;
  const [step] = row.steps;
  const { title, rest, end } = labelOf(row);
  const sign = row.open === null ? "" : row.open ? "▾ " : "▸ ";
  const time = columns.time === null ? `${timeOf(row, origin)} ` : "";
  const place = labelPlace(scene, step, time.length + sign.length + title.length + 2 + rest.length, size * WIDE);
  const head = cut(`${time}${sign}${title}`, place.room);
  const tail = cutBefore(end, rest, place.room - head.length - 2);
  const width = (head.length + (tail === "" ? 0 : 2 + tail.length)) * size * WIDE + 6;
  return (
    <>
      {/* bars stand beside each other on a lane, and may reach below the label */}
      <rect x={place.anchor === "start" ? place.x - 3 : place.x + 3 - width} y={y - 7 - size} width={width} height={size + 4} fill={palette.surface} />
      {children}
      <text x={place.x} y={y - 7} textAnchor={place.anchor} fontSize={size} fontFamily={palette.font} stroke={palette.surface} strokeWidth={4} strokeLinejoin="round" paintOrder="stroke">
        {time !== "" && <tspan fill={palette.quiet}>{head.slice(0, time.length)}</tspan>}
        <tspan fill={step.tone === "neutral" ? palette.text : palette.tones[step.tone]} fontWeight={600}>
          {head.slice(time.length)}
        </tspan>
        {tail !== "" && (
          <tspan dx={2 * size * WIDE} fill={palette.quiet}>
            {tail}
          </tspan>
        )}
      </text>
    </>
  );
}
