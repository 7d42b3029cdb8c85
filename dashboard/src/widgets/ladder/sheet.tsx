import { createPortal, flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { usePrinting } from "~/ui/window";
import { Bars, Lifelines, type Palette, paper, RowDrawing, type Scene } from "./drawing";
import styles from "./ladder.module.css";
import { columnsOf, type Layout, layoutOf, type Pace, type Picture, visible } from "./picture";
import { rowsOf } from "./rows";
import type { Step } from "./steps";

/** What a drawing that leaves the page is made of. */
interface Drawn {
  title: string;
  picture: Picture;
  layout: Layout;
  pace: Pace;
  origin: Step | undefined;
}

const WIDTH = 1200;
const HEADS = 64;

interface SheetProps {
  drawn: Drawn;
  /** Which part of the picture, in pixels of its height. */
  top: number;
  bottom: number;
  palette?: Palette;
}

/** A part of a ladder as one SVG that needs nothing else: it has its title, its lanes and its colours. */
function Sheet({ drawn: { title, picture, layout, pace, origin }, top, bottom, palette = paper() }: SheetProps) {
  const columns = columnsOf(picture.lanes.length, WIDTH);
  const scene: Scene = { lanes: picture.lanes, columns, layout, pace, palette, width: WIDTH, origin };
  const height = bottom - top + HEADS;
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={WIDTH} height={height} viewBox={`0 ${top - HEADS} ${WIDTH} ${height}`} role="img" aria-label={title}>
      <title>{title}</title>
      <desc>{`Messages between ${picture.lanes.map((lane) => picture.names.get(lane)).join(", ")}: ${picture.steps.length} steps`}</desc>
      <rect x={0} y={top - HEADS} width={WIDTH} height={height} fill={palette.surface} />
      <text x={16} y={top - HEADS + 22} fontSize={14} fontWeight={600} fontFamily={palette.font} fill={palette.text}>
        {title}
      </text>
      {picture.lanes.map((lane, index) => (
        <text key={lane} x={columns.xs[index]} y={top - 12} textAnchor="middle" fontSize={12} fontWeight={600} fontFamily={palette.font} fill={palette.text}>
          {picture.names.get(lane)}
        </text>
      ))}
      <Lifelines scene={scene} top={top} bottom={bottom} />
      <Bars scene={scene} bars={picture.bars} top={top} bottom={bottom} />
      {visible(layout, top, bottom)
        .filter(({ y }) => y > top && y <= bottom)
        .map((placed) => (
          <RowDrawing key={placed.row.key} scene={scene} placed={placed} />
        ))}
    </svg>
  );
}

/** The whole ladder as the text of an SVG file. */
export function svgOf(drawn: Drawn): string {
  const room = document.createElement("div");
  const root = createRoot(room);
  flushSync(() => root.render(<Sheet drawn={drawn} top={0} bottom={drawn.layout.height} />));
  const svg = room.firstElementChild;
  const text = svg === null ? "" : new XMLSerializer().serializeToString(svg);
  root.unmount();
  return text;
}

/** Saves the ladder as `NAME.svg`. */
export function downloadSvg(name: string, drawn: Drawn): void {
  const url = URL.createObjectURL(new Blob([svgOf(drawn)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${name}.svg`;
  link.click();
  URL.revokeObjectURL(url);
}

// the height of a page in the units of the drawing, whose width fills an upright page
const PAGE = 1500;
// more than two hundred pages nobody means to print
const PAGES = 200;

interface PrintedLadderProps {
  title: string;
  picture: Picture;
  origin: Step | undefined;
  pace: Pace;
  zoom: number;
}

/** In place of the page, what is printed: the whole ladder, page by page, in the colours of paper. */
export function PrintedLadder({ title, picture, origin, pace, zoom }: PrintedLadderProps) {
  const printing = usePrinting();
  if (!printing) return null;
  const layout = layoutOf(rowsOf(picture.steps, new Set()), pace, zoom);
  return createPortal(
    <div className={styles["printed"]}>
      {pagesOf(layout).map(([top, bottom], index, pages) => (
        <Sheet key={top} drawn={{ title: `${title}, page ${index + 1} of ${pages.length}`, picture, layout, pace, origin }} top={top} bottom={bottom} />
      ))}
    </div>,
    document.body,
  );
}

/** From where to where each page goes; none cuts through a row. */
function pagesOf({ placed, height }: Layout): [number, number][] {
  const pages: [number, number][] = [];
  let top = 0;
  while (top < height && pages.length < PAGES) {
    const first = placed.find(({ y }) => y > top + PAGE - 20);
    const bottom = first === undefined ? height : Math.max(top + PAGE / 2, first.y - 26);
    pages.push([top, bottom]);
    top = bottom;
  }
  return pages;
}
