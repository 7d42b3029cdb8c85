import type { ReactNode } from "react";
import type { Kept } from "~/trace/entry";
import { isAnswer, isMessage } from "~/trace/facts";
import type { Trace } from "~/trace/trace";
import { useFeed } from "~/trace/use-feed";
import type { Column } from "~/ui/grid-columns";
import { Time } from "~/ui/time";
import { EntryMarks } from "~/widgets/finding-mark";
import { EntryClient, Id, Line, Way, What, between } from "./cells";
import type { Row } from "./rows";
import styles from "./trace.module.css";

/** A cell that only entries have. */
const cell = (of: (kept: Kept) => ReactNode) => (row: Row) => (row.type === "entry" ? of(row) : null);
const by = <Value,>(value: (kept: Kept) => Value) => (row: Row) => (row.type === "entry" ? value(row) : undefined);

/** The columns of the list of all entries. */
export function entryColumns(trace: Trace, onOpen: (run: string, seq: number) => void): readonly Column<Row>[] {
  return [
    { key: "time", head: "Time", width: { fit: [6, 9] }, sortBy: by(({ entry }) => entry.at), cell: cell(({ entry }) => <Time at={entry.at} />) },
    { key: "seq", head: "#", width: { fit: [2, 5] }, align: "end", from: 38, sortBy: by(({ entry }) => entry.seq), cell: cell(({ entry }) => <span className={styles["quiet"]}>{entry.seq}</span>) },
    { key: "client", head: "Client", width: { fit: [3, 14] }, from: 32, sortBy: by(({ entry }) => entry.session ?? entry.label), cell: cell(({ run, entry }) => <EntryClient run={run} entry={entry} />) },
    { key: "way", head: "Direction", width: { fit: [4, 8] }, from: 54, sortBy: by(({ entry }) => entry.view.direction), cell: cell(({ entry }) => <Way entry={entry} />) },
    { key: "what", head: "Method or kind", width: { fit: [6, 18] }, sortBy: by(({ entry }) => entry.view.method ?? entry.kind), cell: cell(({ entry }) => <What entry={entry} />) },
    { key: "id", head: "Id", width: { fit: [2, 7] }, from: 54, cell: cell(({ entry }) => <Id entry={entry} />) },
    {
      key: "summary",
      head: "Summary",
      width: { grow: 1, least: 8 },
      cell: cell(({ run, entry }) => (
        <>
          <EntryMarks run={run} seq={entry.seq} reachable={false} />
          <Line entry={entry} />
        </>
      )),
    },
    { key: "pair", head: "Pair", title: "The other half of a request and its answer, with the time between them", width: { fit: [4, 10] }, from: 72, cell: cell(({ run, entry }) => <Pair run={run} entry={entry} trace={trace} onOpen={onOpen} />) },
  ];
}

interface PairProps extends Omit<Kept, "key"> {
  trace: Trace;
  onOpen: (run: string, seq: number) => void;
}

function Pair({ run, entry, trace, onOpen }: PairProps) {
  // the other half may come when the row is there
  const seq = useFeed(() => (entry.view.method !== null && isMessage(entry) && entry.rpc === "request" ? trace.answerOf(run, entry) : trace.requestOf(run, entry))?.seq ?? 0);
  if (!isMessage(entry)) return null;
  const other = trace.entryOf(run, seq);
  if (entry.rpc === "request") {
    if (other === undefined) return <span className={styles["quiet"]}>no answer yet</span>;
    return <Jump text={`#${seq} after ${between(entry, other)}`} title="Show the answer" onClick={() => onOpen(run, seq)} />;
  }
  if (other === undefined) return isAnswer(entry) ? <span className={styles["quiet"]}>request not known</span> : null;
  return <Jump text={`${between(other, entry)} after #${seq}`} title="Show the request" onClick={() => onOpen(run, seq)} />;
}

// Not in the tab order, which has one stop per row: the panel of the entry has the same as a link.
function Jump({ text, title, onClick }: { text: string; title: string; onClick: () => void }) {
  return (
    <button
      type="button"
      tabIndex={-1}
      className={styles["value"]}
      title={title}
      onClick={(event) => {
        event.stopPropagation();
        onClick();
      }}
    >
      {text}
    </button>
  );
}
