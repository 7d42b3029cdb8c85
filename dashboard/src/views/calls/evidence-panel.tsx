import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import type { CallWithEvidence } from "~/trace/call-detail";
import type { Viewed } from "~/trace/entry";
import { offsetOf, originOf, peerOf } from "~/trace/facts";
import { Badge } from "~/ui/badge";
import { Moments } from "~/ui/moments";
import { Panel } from "~/ui/panel";
import { DirectionBadge } from "~/widgets/badges";
import { counted } from "~/words/counted";
import { describe, kindOf } from "~/words/summary";
import styles from "./calls.module.css";

interface EvidencePanelProps {
  evidence: CallWithEvidence["evidence"];
  /** Whether Live shows the run in which it was recorded. */
  current: boolean;
}

/** The entries of the event log that a call rests on, in order; times count from the start of the call. */
export function EvidencePanel({ evidence, current }: EvidencePanelProps) {
  const { complete, events } = evidence;
  const origin = originOf(events);
  const moments =
    origin === undefined
      ? []
      : events.map((entry) => ({
          key: entry.seq,
          offset: offsetOf(entry, origin),
          what: <What entry={entry} linked={current} />,
          detail: describe(entry, entry.view.method),
        }));
  const count = `${counted(events.length, "entry", "entries")}, ${complete ? "complete" : "incomplete"}`;
  return (
    <Panel title="Evidence" actions={<span className={styles["quiet"]}>{count}</span>}>
      {!complete && (
        <p>Incomplete: some entries of this call were pushed out of the event log, or there were more than are remembered.</p>
      )}
      <Moments label="Evidence" moments={moments} />
    </Panel>
  );
}

function What({ entry, linked }: { entry: Viewed; linked: boolean }) {
  const { direction } = entry.view;
  return (
    <>
      {linked ? <Link href={traceHref({ at: entry.seq })}>#{entry.seq}</Link> : <span>#{entry.seq}</span>}
      {direction !== null && <DirectionBadge direction={direction} peer={peerOf(entry)} />}
      <Badge title={entry.kind}>{kindOf(entry.kind)}</Badge>
    </>
  );
}
