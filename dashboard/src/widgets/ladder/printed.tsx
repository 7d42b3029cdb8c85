import { createPortal } from "react-dom";
import { usePrinting } from "~/ui/use-printing";
import styles from "./ladder.module.css";
import { type Layout, type Pace, layoutOf } from "./layout";
import type { Picture } from "./picture";
import { rowsOf } from "./rows";
import { Sheet } from "./sheet";
import type { Step } from "./steps";

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
