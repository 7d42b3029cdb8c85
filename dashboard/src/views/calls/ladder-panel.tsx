import { useMemo } from "react";
import { Link, useLocation } from "wouter";
import type { CallRow } from "~/protocol/schema";
import type { CallWithEvidence } from "~/trace/call-detail";
import { Panel } from "~/ui/panel";
import { Ladder } from "~/widgets/ladder/ladder";
import { layoutOf } from "~/widgets/ladder/layout";
import { usePicture } from "~/widgets/ladder/picture";
import { rowsOf } from "~/widgets/ladder/rows";
import { clientOf } from "~/words/client-name";
import styles from "./calls.module.css";

// with the names of the lanes above it; a longer one scrolls
const HEADS = 34;
const TALLEST = 460;

const FOLDED: ReadonlySet<string> = new Set();

/** The messages of a call as a picture; a row leads to its entry. */
export function LadderPanel({ call, evidence: { events, exchanges } }: { call: CallRow; evidence: CallWithEvidence["evidence"] }) {
  const [, navigate] = useLocation();
  const picture = usePicture(events, exchanges, `${call.session ?? ""} ${clientOf(call)}`.trim());
  const height = useMemo(() => Math.min(TALLEST, layoutOf(rowsOf(picture.steps, FOLDED), "even", 1).height + HEADS), [picture.steps]);
  if (picture.steps.length === 0) return null;
  const whole = `/trace?${new URLSearchParams({ call: call.id })}`;
  return (
    <Panel title="Ladder" actions={<Link href={whole}>Open the ladder</Link>}>
      <div className={styles["ladder"]} style={{ height }}>
        <Ladder picture={picture} label="Ladder of the call" origin={picture.steps[0]} onOpen={({ seq }) => navigate(`${whole}&at=${seq}`)} />
      </div>
    </Panel>
  );
}
