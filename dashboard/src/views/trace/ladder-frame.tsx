import type { ReactNode } from "react";
import { Button } from "~/ui/button";
import { Segmented } from "~/ui/choice";
import { CopyButton } from "~/ui/copy-button";
import { SearchField } from "~/ui/search-field";
import { useUrlState } from "~/ui/url-state";
import { Ladder } from "~/widgets/ladder/ladder";
import { type Pace, layoutOf } from "~/widgets/ladder/layout";
import type { Picture } from "~/widgets/ladder/picture";
import { PrintedLadder } from "~/widgets/ladder/printed";
import { rowsOf } from "~/widgets/ladder/rows";
import { downloadSvg } from "~/widgets/ladder/sheet";
import type { Step } from "~/widgets/ladder/steps";
import { StepTable } from "./step-table";
import styles from "./trace.module.css";

interface LadderFrameProps {
  title: string;
  /** The name of the file that it is saved as, without its ending. */
  file: string;
  picture: Picture;
  origin?: Step | undefined;
  follow?: boolean;
  /** The selected entry; one that is no step, such as a head of HTTP, selects the step before it. */
  at: number | null;
  onOpen: (seq: number) => void;
  /** What stands before and behind the tools. */
  before?: ReactNode;
  behind?: ReactNode;
  /** What is to be said above the picture. */
  note: string | null;
  /** Stands in place of a picture without steps. */
  empty: ReactNode;
}

const PACES = [
  { value: "", label: "Evenly" },
  { value: "scale", label: "Time to scale" },
];
const LOOKS = [
  { value: "", label: "Picture" },
  { value: "list", label: "List" },
];
const CLOSEST = 8;
const FARTHEST = 1 / 4;
const ALL_FOLDED: ReadonlySet<string> = new Set();

/** A ladder with what it can be read by; all choices are in the address. */
export function LadderFrame({ title, file, picture, origin, follow = false, at, onOpen, before, behind, note, empty }: LadderFrameProps) {
  const [paceName, setPace] = useUrlState("time");
  const [zoomText, setZoom] = useUrlState("zoom", "1");
  const [look, setLook] = useUrlState("as");
  const [text, setText] = useUrlState("find");
  const pace: Pace = paceName === "scale" ? "scale" : "even";
  const zoom = Math.min(CLOSEST, Math.max(FARTHEST, Number(zoomText) || 1));
  const step = at === null ? undefined : picture.steps.findLast(({ seq }) => seq <= at);
  const label = `${title}, ${picture.steps.length} steps`;
  const open = ({ seq }: Step) => onOpen(seq);
  return (
    <>
      <div className={styles["ladderTools"]}>
        {before}
        <Segmented label="Rows" options={PACES} value={paceName} onChange={setPace} />
        <span>
          <Button look="quiet" aria-label="Zoom out" disabled={zoom <= FARTHEST} onClick={() => setZoom(String(zoom / 2))}>
            −
          </Button>
          <Button look="quiet" aria-label="Zoom in" disabled={zoom >= CLOSEST} onClick={() => setZoom(String(zoom * 2))}>
            +
          </Button>
        </span>
        <Segmented label="Shown as" options={LOOKS} value={look} onChange={setLook} />
        <SearchField label="Find in the messages" placeholder="Find" value={text} onChange={setText} />
        <Button disabled={picture.steps.length === 0} onClick={() => downloadSvg(file, { title, picture, origin, layout: layoutOf(rowsOf(picture.steps, ALL_FOLDED), pace, zoom), pace })}>
          Save SVG
        </Button>
        <CopyButton text={() => location.href} label="Copy link" />
        {behind}
      </div>
      {note !== null && (
        <p className={styles["note"]} role="status">
          {note}
        </p>
      )}
      {picture.steps.length === 0 ? (
        empty
      ) : look === "list" ? (
        <StepTable label={label} picture={picture} origin={origin} text={text} selected={step === undefined ? "" : String(step.seq)} onOpen={open} />
      ) : (
        <Ladder picture={picture} label={label} pace={pace} zoom={zoom} text={text} origin={origin} selected={step?.seq ?? null} onOpen={open} follow={follow} />
      )}
      <PrintedLadder title={title} picture={picture} origin={origin} pace={pace} zoom={zoom} />
    </>
  );
}
