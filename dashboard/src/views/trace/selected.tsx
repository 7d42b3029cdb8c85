import { ApiError } from "~/protocol/client";
import { useEntry } from "~/trace/use-entry";
import { Drawer } from "~/ui/drawer";
import { EntryPanel } from "./entry-panel";
import { useAllKnown, useKnown } from "./known";
import { type Place, type LiveUrl, placeOf } from "./use-live-url";
import { type LiveRow, entryOf } from "./wire-rows";

interface SelectedProps {
  url: LiveUrl;
  rows: readonly LiveRow[];
  onOpen: (run: string, seq: number) => void;
}

/** The panel of the entry that the address selects, wherever it has to be taken from. */
export function Selected({ url, rows, onOpen }: SelectedProps) {
  const known = useAllKnown();
  const place = placeOf(url.at);
  const onClose = () => url.change({ at: "" }, true);
  if (url.at === "") return null;
  if (place === null) return <Gone title={url.at} why={`“${url.at}” is no place in the log; it would be a number, or RUN-NUMBER.`} onClose={onClose} />;
  const run = place.run ?? known.run;
  const entry = known.entry(run, place.seq);
  if (entry === undefined) return <Fetched place={place} url={url} onClose={onClose} />;
  const index = rows.findIndex((row) => isOf(row, run, place.seq));
  const go = (step: number) => {
    const next = index === -1 ? null : neighbour(rows, index, step);
    return next === null ? null : () => onOpen(next.run, next.entry.seq);
  };
  return <EntryPanel run={run} entry={entry} url={url} above={go(-1)} below={go(1)} onClose={onClose} />;
}

function isOf(row: LiveRow, run: string, seq: number): boolean {
  const shown = entryOf(row);
  return shown !== null && shown.run === run && shown.entry.seq === seq;
}

/** What the nearest row that shows another entry shows. */
function neighbour(rows: readonly LiveRow[], index: number, step: number) {
  const from = rows[index];
  const here = from === undefined ? null : entryOf(from);
  for (let at = index + step; at >= 0 && at < rows.length; at += step) {
    const row = rows[at];
    const shown = row === undefined ? null : entryOf(row);
    if (shown !== null && shown.entry !== here?.entry) return shown;
  }
  return null;
}

/** An entry that this page does not have (any more). */
function Fetched({ place, url, onClose }: { place: Place; url: SelectedProps["url"]; onClose: () => void }) {
  const run = useKnown((known) => known.run);
  const other = place.run !== null && place.run !== run;
  const { data, error } = useEntry(other ? "" : run, place.seq);
  const title = `#${place.seq}`;
  if (run === "") return <Gone title={title} why="The server has not been reached yet." onClose={onClose} />;
  if (other) {
    const why = `It belongs to run ${place.run} of the server, which is over; its log went with it. The current run is ${run}.`;
    return <Gone title={title} why={why} onClose={onClose} />;
  }
  if (error !== null) {
    const why = error instanceof ApiError ? `The server says: ${error.message}.` : `It could not be loaded: ${error.message}.`;
    return <Gone title={title} why={why} onClose={onClose} />;
  }
  if (data === undefined) return <Gone title={title} why="Loading…" onClose={onClose} />;
  return <EntryPanel run={run} entry={data} url={url} above={null} below={null} onClose={onClose} />;
}

function Gone({ title, why, onClose }: { title: string; why: string; onClose: () => void }) {
  return (
    <Drawer title={title} of={title} onClose={onClose}>
      <p role="status">{why}</p>
    </Drawer>
  );
}
