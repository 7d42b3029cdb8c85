import type { ReactNode } from "react";
import { Button } from "~/ui/button";
import { Segmented } from "~/ui/choice";
import { CopyButton } from "~/ui/copy-button";
import { Page } from "~/ui/page";
import { SearchField } from "~/ui/search-field";
import { useUrlState } from "~/ui/url-state";
import { Ladder } from "~/widgets/ladder/ladder";
import { layoutOf, type Pace } from "~/widgets/ladder/layout";
import type { Picture } from "~/widgets/ladder/picture";
import { PrintedLadder } from "~/widgets/ladder/printed";
import { rowsOf } from "~/widgets/ladder/rows";
import { downloadSvg } from "~/widgets/ladder/sheet";
import type { Step } from "~/widgets/ladder/steps";
import { EntryDrawer } from "./entry-drawer";
import styles from "./ladder-page.module.css";
import { StepTable } from "./step-table";

interface LadderPageProps {
  title: string;
  /** The name of the file that it is saved as, without its ending. */
  file: string;
  picture: Picture;
  origin?: Step | undefined;
  /** Whether Live shows the run. */
  current: boolean;
  follow?: boolean;
  filters?: ReactNode;
  links?: ReactNode;
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

/** A ladder with what it can be read by; all choices are in the address. */
export function LadderPage({ title, file, picture, origin, current, follow = false, filters, links, note, empty }: LadderPageProps) {
  const [paceName, setPace] = useUrlState("time");
  const [zoomText, setZoom] = useUrlState("zoom", "1");
  const [look, setLook] = useUrlState("as");
  const [text, setText] = useUrlState("text");
  const [at, setAt] = useUrlState("at", "", true);
  const pace: Pace = paceName === "scale" ? "scale" : "even";
  const zoom = Math.min(CLOSEST, Math.max(FARTHEST, Number(zoomText) || 1));
  // of an entry that is no step, such as a head of HTTP, the step before it
  const step = at === "" ? undefined : picture.steps.findLast(({ seq }) => seq <= Number(at));
  const open = ({ seq }: Step) => setAt(String(seq));
  const label = `${title}, ${picture.steps.length} steps`;
  const tools = (
    <>
      {filters}
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
      <SearchField label="Search in the messages" value={text} onChange={setText} />
      <Button disabled={picture.steps.length === 0} onClick={() => downloadSvg(file, { title, picture, origin, layout: layoutOf(rowsOf(picture.steps, ALL_FOLDED), pace, zoom), pace })}>
        Save SVG
      </Button>
      <CopyButton text={() => location.href} label="Copy link" />
      {links}
    </>
  );
  const drawer = step !== undefined && <EntryDrawer step={step} current={current} onOpen={setAt} onClose={() => setAt("")} />;
  return (
    <Page title={title} tools={tools} drawer={drawer}>
      {note !== null && (
        <p className={styles["note"]} role="status">
          {note}
        </p>
      )}
      {picture.steps.length === 0 ? (
        empty
      ) : look === "list" ? (
        <StepTable label={label} picture={picture} origin={origin} text={text} selected={at} onOpen={open} />
      ) : (
        <Ladder picture={picture} label={label} pace={pace} zoom={zoom} text={text} origin={origin} selected={step?.seq ?? null} onOpen={open} follow={follow} />
      )}
      <PrintedLadder title={title} picture={picture} origin={origin} pace={pace} zoom={zoom} />
    </Page>
  );
}

const ALL_FOLDED: ReadonlySet<string> = new Set();
