import { type CSSProperties, type KeyboardEvent, type RefObject, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Button } from "~/ui/buttons";
import { usePrinting, useWidth } from "~/ui/window";
import { Bars, Lifelines, RowDrawing, type Scene, SCREEN } from "./drawing";
import styles from "./ladder.module.css";
import { columnsOf, layoutOf, type Pace, type Picture, type Placed, visible } from "./picture";
import { hasText, indexOf, type Row, rowsOf, sentenceOf } from "./rows";
import type { Step } from "./steps";

// what an upright page of A4 has room for, in pixels
const PAPER = 680;

interface LadderProps {
  picture: Picture;
  /** What it is, for those who hear it. */
  label: string;
  pace?: Pace;
  zoom?: number;
  /** What is searched. */
  text?: string;
  /** From where times are counted; left out, the wall clock is shown. */
  origin?: Step | undefined;
  /** The number of the entry that is shown elsewhere. */
  selected?: number | null;
  onOpen: (step: Step) => void;
  /** Begins at the end, and stays there while it grows. */
  follow?: boolean;
}

// the picture is drawn anew when it was scrolled by so many pixels
const PIECE = 400;

/** The window of the scrolled box that is drawn: what is in view, and some more on both sides. */
function useDrawn() {
  const box = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState({ top: 0, height: 2 * PIECE });
  const look = () => {
    if (box.current === null) return;
    const { scrollTop, clientHeight } = box.current;
    const top = Math.max(0, Math.floor(scrollTop / PIECE - 1) * PIECE);
    const height = Math.ceil(clientHeight / PIECE + 3) * PIECE;
    setDrawn((before) => (before.top === top && before.height === height ? before : { top, height }));
  };
  return { box, drawn, look };
}

/** Which row a key leads to; undefined for other keys. */
function target(key: string, from: number, count: number): number | undefined {
  const steps = new Map(Object.entries({ ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -count, End: count }));
  const step = steps.get(key);
  return step === undefined ? undefined : Math.max(0, Math.min(count - 1, from + step));
}

/**
 * A picture of messages between lanes, of which only what is in view exists. It fills its parent, which must be a flex column.
 *
 * It is one stop of the keyboard: arrows, Page, Home and End move from row to row, Enter opens the entry, and a fold with Space.
 */
export function Ladder({ picture, label, pace = "even", zoom = 1, text = "", origin, selected = null, onOpen, follow = false }: LadderProps) {
  const id = useId();
  const { box, drawn, look } = useDrawn();
  const [measured, measure] = useWidth();
  const width = usePrinting() ? Math.min(measured, PAPER) : measured;
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState<string | null>(null);
  const rows = useMemo(() => rowsOf(picture.steps, open), [picture.steps, open]);
  const layout = useMemo(() => layoutOf(rows, pace, zoom), [rows, pace, zoom]);
  const columns = useMemo(() => columnsOf(picture.lanes.length, width), [picture.lanes.length, width]);
  const wanted = text.trim().toLowerCase();
  const found = useMemo(() => (wanted === "" ? null : rows.flatMap((row, index) => (hasText(row, wanted) ? [index] : []))), [rows, wanted]);
  const current = active === null ? -1 : rows.findIndex(({ key }) => key === active);
  const show = (index: number) => {
    const placed = layout.placed[index];
    if (placed === undefined || box.current === null) return;
    const { scrollTop, clientHeight } = box.current;
    if (placed.y < scrollTop + 60 || placed.y > scrollTop + clientHeight - 60) box.current.scrollTo({ top: placed.y - clientHeight / 2 });
    setActive(placed.row.key);
  };
  useFollow(box, follow && selected === null, look);
  useShown(selected, rows, width > 0, show);
  const toggle = ({ key }: Row) => setOpen((before) => new Set(before.has(key) ? [...before].filter((each) => each !== key) : [...before, key]));
  const act = (row: Row) => {
    setActive(row.key);
    if (row.open === null) onOpen(row.steps[0]);
    else toggle(row);
  };
  const press = (event: KeyboardEvent) => {
    const row = rows[current];
    const next = target(event.key, current, rows.length);
    if (next !== undefined) show(next);
    else if (row !== undefined && (event.key === "Enter" || event.key === " ")) act(row);
    else return;
    event.preventDefault();
  };
  const scene: Scene = { lanes: picture.lanes, columns, layout, pace, palette: SCREEN, width, origin };
  const bottom = Math.min(layout.height, drawn.top + drawn.height);
  const placed = width === 0 ? [] : visible(layout, drawn.top, bottom);
  const highlighted = rows[current]?.steps[0].seq ?? selected;
  return (
    <div className={styles["frame"]}>
      {found !== null && <Search found={found} current={current} onShow={show} />}
      <div
        ref={box}
        className={styles["box"]}
        role="listbox"
        aria-label={label}
        tabIndex={0}
        aria-activedescendant={placed.some(({ row }) => row.key === active) ? `${id}-${active}` : undefined}
        onScroll={look}
        onKeyDown={press}
      >
        <Heads picture={picture} xs={columns.xs} narrow={columns.time === null} width={width} />
        <div ref={measure} className={styles["sheet"]} role="presentation" style={{ height: layout.height }}>
          <svg className={styles["picture"]} style={{ top: drawn.top }} width={width} height={Math.max(0, bottom - drawn.top)} viewBox={`0 ${drawn.top} ${width} ${Math.max(1, bottom - drawn.top)}`} role="presentation">
            <g aria-hidden="true">
              <Lifelines scene={scene} top={drawn.top} bottom={bottom} />
              <Bars scene={scene} bars={picture.bars} top={drawn.top} bottom={bottom} />
              <Bracket scene={scene} rows={rows} seq={highlighted} />
            </g>
            {placed.map((each) => (
              <g
                key={each.row.key}
                id={`${id}-${each.row.key}`}
                role="option"
                aria-selected={each.row.steps[0].seq === selected && each.row.open === null}
                aria-posinset={each.index + 1}
                aria-setsize={rows.length}
                className={classOf(each, { active, selected, found })}
                onClick={() => act(each.row)}
              >
                {/* the name of the row, with all of what is cut in the picture */}
                <title>{sentenceOf(each.row, picture.names, origin)}</title>
                <g aria-hidden="true">
                  <rect x={0} y={each.y - 24} width={width} height={34} className={styles["ground"]} />
                  <RowDrawing scene={scene} placed={each} />
                </g>
              </g>
            ))}
          </svg>
        </div>
      </div>
    </div>
  );
}

function classOf({ row, index }: Placed, { active, selected, found }: { active: string | null; selected: number | null; found: readonly number[] | null }): string {
  const names = [styles["row"], row.key === active && styles["active"], row.steps[0].seq === selected && row.open === null && styles["chosen"], found !== null && !found.includes(index) && styles["other"]];
  return names.filter(Boolean).join(" ");
}

/** Keeps the end in view while the picture grows, unless somebody looks at something else. */
function useFollow(box: RefObject<HTMLDivElement | null>, follow: boolean, look: () => void): void {
  const before = useRef(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    if (follow && element.scrollTop + element.clientHeight >= before.current - 60) element.scrollTo({ top: element.scrollHeight });
    before.current = element.scrollHeight;
    look();
  });
}

/** Shows what was chosen elsewhere, once. */
function useShown(selected: number | null, rows: readonly Row[], ready: boolean, show: (index: number) => void): void {
  const shown = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (!ready || selected === shown.current) return;
    if (selected !== null) {
      const index = indexOf(rows, selected);
      if (index === -1) return;
      show(index);
    }
    shown.current = selected;
  });
}

interface HeadsProps {
  picture: Picture;
  xs: readonly number[];
  narrow: boolean;
  width: number;
}

/** The names above the lifelines. */
function Heads({ picture, xs, narrow, width }: HeadsProps) {
  const apart = (xs[1] ?? 0) - (xs[0] ?? 0);
  return (
    <div className={styles["heads"]} role="presentation">
      {picture.lanes.map((lane, index) => {
        const x = xs[index] ?? 0;
        const first = narrow && index === 0;
        const last = narrow && index === xs.length - 1;
        const room = Math.max(80, first || last ? apart / 2 + (first ? x : width - x) : Math.min(apart - 16, 2 * Math.min(x, width - x)));
        const place: CSSProperties = first ? { left: 4 } : last ? { right: 4 } : { left: x, transform: "translateX(-50%)" };
        return (
          <span key={lane} className={`${styles["head"]} cut`} style={{ ...place, maxWidth: room - 8 }} title={picture.names.get(lane)}>
            {picture.names.get(lane)}
          </span>
        );
      })}
    </div>
  );
}

/** From a request to its answer. */
function Bracket({ scene, rows, seq }: { scene: Scene; rows: readonly Row[]; seq: number | null }) {
  const { placed } = scene.layout;
  if (seq === null) return null;
  const here = placed[indexOf(rows, seq)];
  const pair = here?.row.open === null ? here.row.steps[0].pair : null;
  const there = pair === null ? undefined : placed[indexOf(rows, pair)];
  if (here === undefined || there === undefined) return null;
  const [asks, answers] = here.y < there.y ? [here, there] : [there, here];
  const x = scene.columns.xs[scene.lanes.indexOf(asks.row.steps[0].from)] ?? 0;
  return <path d={`M${x} ${asks.y} V${answers.y}`} stroke={scene.palette.accent} strokeWidth={3} />;
}

interface SearchProps {
  /** The places of the rows that have what is searched. */
  found: readonly number[];
  /** Where one is, -1 for nowhere. */
  current: number;
  onShow: (index: number) => void;
}

/** How many rows were found, and the way from one to the next. */
function Search({ found, current, onShow }: SearchProps) {
  const place = found.indexOf(current);
  const next = found.find((index) => index > current) ?? found[0];
  const before = found.findLast((index) => index < current) ?? found.at(-1);
  return (
    <div className={`${styles["found"]} raised row`} role="group" aria-label="What was found">
      <span role="status">{found.length === 0 ? "nothing found" : place === -1 ? `${found.length} found` : `${place + 1} of ${found.length}`}</span>
      <Button small aria-label="Previous one found" disabled={before === undefined} onClick={() => before !== undefined && onShow(before)}>
        ↑
      </Button>
      <Button small aria-label="Next one found" disabled={next === undefined} onClick={() => next !== undefined && onShow(next)}>
        ↓
      </Button>
    </div>
  );
}
