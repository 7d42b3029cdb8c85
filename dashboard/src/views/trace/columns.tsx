import type { ReactNode } from "react";
import type { Entry } from "~/protocol/schema";
import type { Column } from "~/ui/data-table";
import { Time } from "~/ui/time";
import { EntryMarks } from "~/widgets/finding-mark";
import { Era, Id, Line, Pair, Way, What, Who } from "./cells";
import styles from "./live.module.css";
import type { LiveRow } from "./wire-rows";

interface Options {
  /** Beside the panel there is room for less; it shows the rest of the selected entry. */
  narrow: boolean;
  onOpen: (run: string, seq: number) => void;
}

/** A cell that only entries have. */
const entryCell = (cell: (entry: Entry, life: string) => ReactNode) => (row: LiveRow) => (row.type === "entry" ? cell(row.entry, row.run) : null);

/** The columns of the list. */
export function columnsOf({ narrow, onOpen }: Options): readonly Column<LiveRow>[] {
  const all: readonly (Column<LiveRow> & { wide?: true })[] = [
    { key: "time", head: "Time", width: "6.3rem", cell: entryCell((entry) => <Time at={entry.at} />) },
    { key: "seq", head: "#", width: "2.8rem", align: "end", cell: entryCell((entry) => <span className={styles["quiet"]}>{entry.seq}</span>) },
    { key: "who", head: "Client", width: narrow ? "4.2rem" : "7.6rem", cell: entryCell((entry, life) => <Who run={life} entry={entry} />) },
    { key: "way", head: "Direction", width: "5.3rem", cell: entryCell((entry, life) => <Way run={life} entry={entry} />) },
    { key: "era", head: "Era, revision", width: "8.7rem", wide: true, cell: entryCell((entry, life) => <Era run={life} entry={entry} />) },
    {
      key: "what",
      head: "Method or kind",
      width: narrow ? "minmax(6.5rem, 1fr)" : "11.5rem",
      cell: entryCell((entry, life) => <What run={life} entry={entry} />),
    },
    { key: "id", head: "Id", width: narrow ? "2.6rem" : "3.4rem", cell: entryCell((entry) => <Id entry={entry} />) },
    {
      key: "summary",
      head: "Summary",
      width: "minmax(7rem, 2fr)",
      cell: entryCell((entry, life) => (
        <>
          <EntryMarks run={life} seq={entry.seq} reachable={false} />
          <Line run={life} entry={entry} />
        </>
      )),
    },
    { key: "pair", head: "Pair", width: "7.4rem", wide: true, cell: entryCell((entry, life) => <Pair run={life} entry={entry} onOpen={onOpen} />) },
  ];
  return all.filter((column) => !narrow || column.wide !== true);
}
