import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, useRef } from "react";
import { Button } from "~/ui/button";
import { useWidth } from "~/ui/use-width";
import { EraBadge, StatusBadge } from "~/widgets/badges";
import { counted } from "~/words/counted";
import { LANE_HEIGHT, Bar } from "./bar";
import type { Line } from "./groups";
import type { Lane } from "./lane";
import { axisOf, momentAt, scaleOf } from "./scale";
import styles from "./timeline.module.css";
import { useRange } from "./use-range";
import type { ShownSpan } from "./use-span";
import { sentence } from "./words";

interface SwimlanesProps {
  lines: readonly Line[];
  span: ShownSpan;
  /** The key of the lane whose facts are shown. */
  selected: string;
  onSelect: (lane: Lane) => void;
  onHover: (lane: Lane) => void;
  onOpen: (lane: Lane) => void;
  /** Shows these lanes, and no more time than they take. */
  onFit: (lanes: readonly Lane[]) => void;
}

// the column of names, and where there is little room
const NAMES = 336;
const FEW_NAMES = 132;
const LITTLE = 700;

/** The next lane from `index` on in the direction of `step`, past the names of clients. */
function nextLane(lines: readonly Line[], index: number, step: number): number {
  let at = Math.min(lines.length, Math.max(-1, index));
  while (lines[at]?.type === "client") at += step;
  return lines[at] === undefined ? -1 : at;
}

function targetOf(key: string, current: number, lines: readonly Line[]): number {
  if (key === "ArrowDown") return nextLane(lines, current + 1, 1);
  if (key === "ArrowUp") return nextLane(lines, current - 1, -1);
  if (key === "Home") return nextLane(lines, 0, 1);
  return key === "End" ? nextLane(lines, lines.length - 1, -1) : -1;
}

/** The picture: a line for each lane, of which only those in view exist. */
export function Swimlanes({ lines, span, selected, onSelect, onHover, onOpen, onFit }: SwimlanesProps) {
  const box = useRef<HTMLDivElement>(null);
  const wanted = useRef<string | null>(null);
  const [all, measure] = useWidth();
  const little = all < LITTLE;
  const names = little ? FEW_NAMES : NAMES;
  const width = Math.max(0, all - names);
  const { range, handlers } = useRange(names, (start, end) => span.hold({ from: momentAt(span, width, start), until: momentAt(span, width, end) }));
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LANE_HEIGHT,
    overscan: 6,
    getItemKey: (index) => lines[index]?.key ?? index,
  });
  const known = lines.findIndex((line) => line.key === selected);
  const current = known === -1 ? nextLane(lines, 0, 1) : known;
  const press = (event: KeyboardEvent) => {
    const line = lines[current];
    if (event.key === "Enter" && line?.type === "lane") return onOpen(line.lane);
    const index = targetOf(event.key, current, lines);
    const target = lines[index];
    if (target?.type !== "lane") return undefined;
    event.preventDefault();
    wanted.current = target.key;
    onSelect(target.lane);
    return virtual.scrollToIndex(index, { align: "auto" });
  };
  const take = (key: string, element: HTMLElement | null) => {
    if (element === null || wanted.current !== key) return;
    wanted.current = null;
    element.focus({ preventScroll: true });
  };
  return (
    <div ref={box} className={`${styles["lanes"]} ${little ? styles["little"] : ""}`} style={{ "--names": `${names}px` } as CSSProperties}>
      {/* oxlint-disable-next-line jsx-a11y/interactive-supports-focus -- its rows have the focus */}
      <div ref={measure} role="grid" aria-label="Calls, tasks and streams over time" aria-rowcount={lines.length + 1} className={styles["grid"]} onKeyDown={press} {...handlers}>
        <Axis span={span} width={width} />
        <div role="rowgroup" className={styles["rows"]} style={{ height: virtual.getTotalSize() }}>
          <Grid span={span} width={width} height={virtual.getTotalSize()} />
          {virtual.getVirtualItems().map(({ index, start }) => {
            const line = lines[index];
            if (line === undefined) return null;
            const place = { transform: `translateY(${start}px)` };
            if (line.type === "client") {
              return (
                <div key={line.key} role="row" aria-rowindex={index + 2} className={`${styles["line"]} ${styles["client"]}`} style={place}>
                  <ClientCell line={line} onFit={() => onFit(lanesBelow(lines, index))} />
                </div>
              );
            }
            return (
              <div
                key={line.key}
                ref={(element) => take(line.key, element)}
                role="row"
                aria-rowindex={index + 2}
                aria-selected={line.key === selected}
                tabIndex={index === current ? 0 : -1}
                className={`${styles["line"]} ${styles["lane"]}`}
                style={place}
                onFocus={() => onSelect(line.lane)}
                onPointerEnter={() => onHover(line.lane)}
                onDoubleClick={() => onOpen(line.lane)}
              >
                <LaneCells lane={line.lane} span={span} width={width} />
              </div>
            );
          })}
        </div>
        {range !== null && <div className={styles["range"]} style={{ left: names + Math.min(range.start, range.end), width: Math.abs(range.end - range.start) }} />}
      </div>
    </div>
  );
}

/** The lanes of the client whose name is at `index`. */
function lanesBelow(lines: readonly Line[], index: number): Lane[] {
  const end = lines.findIndex((line, at) => at > index && line.type === "client");
  return lines.slice(index + 1, end === -1 ? undefined : end).flatMap((line) => (line.type === "lane" ? [line.lane] : []));
}

function ClientCell({ line, onFit }: { line: Extract<Line, { type: "client" }>; onFit: () => void }) {
  return (
    <div role="gridcell" aria-colspan={2} className={styles["clientName"]}>
      {line.name} {line.era !== null && <EraBadge era={line.era} />}{" "}
      <span className={styles["quiet"]}>
        {counted(line.lanes, "lane")}
      </span>{" "}
      <Button look="quiet" small aria-label={`Fit ${line.name}`} title="No more time than these lanes take" onClick={onFit}>
        Fit
      </Button>
    </div>
  );
}

function LaneCells({ lane, span, width }: { lane: Lane; span: ShownSpan; width: number }) {
  return (
    <>
      <div role="rowheader" className={styles["name"]}>
        <span className={styles["kind"]}>{lane.kind}</span>
        <span className={styles["what"]} title={lane.name}>
          {lane.name} <code className={styles["quiet"]}>{lane.id.length > 12 ? `${lane.id.slice(0, 8)}…` : lane.id}</code>
        </span>
        <StatusBadge status={lane.state} />
      </div>
      <div role="gridcell" className={styles["picture"]} aria-label={sentence(lane, span.now)}>
        <Bar lane={lane} scale={scaleOf(span, width)} width={width} now={span.now} />
      </div>
    </>
  );
}

function Axis({ span, width }: { span: ShownSpan; width: number }) {
  const scale = scaleOf(span, width);
  return (
    <div role="rowgroup" className={styles["axis"]}>
      <div role="row" aria-rowindex={1} className={styles["axisLine"]}>
        <div role="columnheader" className={styles["axisName"]}>
          Lane
        </div>
        <div role="columnheader" className={styles["picture"]}>
          <span className={styles["hidden"]}>Time</span>
          <svg width={width} height={24} aria-hidden="true">
            {axisOf(span, width).map(({ at, label }) => (
              <text key={at} x={scale(at) + 4} y={16} className={styles["moment"]}>
                {label}
              </text>
            ))}
          </svg>
        </div>
      </div>
    </div>
  );
}

function Grid({ span, width, height }: { span: ShownSpan; width: number; height: number }) {
  const scale = scaleOf(span, width);
  const lines = axisOf(span, width).map(({ at }) => `M${scale(at)} 0 V${height}`);
  return (
    <svg className={styles["gridLines"]} width={width} height={height} aria-hidden="true">
      <path d={lines.join(" ")} />
    </svg>
  );
}
