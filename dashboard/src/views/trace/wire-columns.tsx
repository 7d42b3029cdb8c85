import type { ReactNode } from "react";
import type { Column } from "~/ui/data-table";
import styles from "./live.module.css";
import { ClientOrWay, End, Fold, IdOf, Narrow, Said, Status, Times, Took, When } from "./wire-cells";
import type { LiveRow, WireRow } from "./wire-rows";

interface Options {
  open: ReadonlySet<string>;
  onToggle: (row: LiveRow) => void;
  /** How much room there is: `all` the columns, those that matter `beside` the panel, or `one`, for a phone. */
  room: "all" | "beside" | "one";
}

const isWire = (row: LiveRow): row is WireRow => row.type === "exchange" || row.type === "message" || row.type === "progress";

/** Of a repeat, what its first exchange has. */
const firstOf = (row: LiveRow): LiveRow => (row.type === "repeat" && row.exchanges[0] !== undefined ? { type: "exchange", key: row.key, exchange: row.exchanges[0] } : row);

const wireCell = (cell: (row: WireRow) => ReactNode) => (row: LiveRow) => {
  const of = firstOf(row);
  return isWire(of) ? cell(of) : null;
};

const exchangeCell = (cell: (row: Extract<WireRow, { type: "exchange" }>) => ReactNode) => (row: LiveRow) => {
  const of = firstOf(row);
  return of.type === "exchange" ? cell(of) : null;
};

/** A cell that a repeat does not have, as its exchanges differ in it. */
const ownCell = (cell: (row: LiveRow) => ReactNode) => (row: LiveRow) => (row.type === "repeat" ? null : cell(row));

/** The columns of the wire. */
export function wireColumns({ open, onToggle, room }: Options): readonly Column<LiveRow>[] {
  const said = (row: LiveRow) => {
    if (!isWire(row) && row.type !== "repeat") return null;
    return (
      <span className={styles["folding"]}>
        <Fold row={row} open={open} onToggle={onToggle} />
        <span className={`${styles["cut"]} ${row.type === "exchange" && row.under === true ? styles["second"] : ""}`}>
          {row.type === "repeat" ? <Times exchanges={row.exchanges} /> : room === "one" && row.type === "exchange" ? <Narrow exchange={row.exchange} /> : <Said row={row} />}
        </span>
      </span>
    );
  };
  if (room === "one") return [{ key: "said", head: "Exchange", width: "minmax(0, 1fr)", cell: said }];
  const all: readonly (Column<LiveRow> & { wide?: true })[] = [
    { key: "time", head: "Time", width: "6.4rem", cell: wireCell((row) => <When row={row} />) },
    { key: "client", head: "Client", width: room === "all" ? "9rem" : "5.5rem", cell: wireCell((row) => <ClientOrWay row={row} />) },
    { key: "said", head: "Request or message", width: "minmax(9rem, 3fr)", cell: said },
    { key: "id", head: "Id", width: "3.6rem", wide: true, cell: ownCell(wireCell((row) => <IdOf row={row} />)) },
    { key: "status", head: "Status", width: "3rem", cell: exchangeCell(({ exchange }) => <Status exchange={exchange} />) },
    { key: "end", head: "How it ended", width: "minmax(7rem, 2fr)", cell: exchangeCell(({ exchange }) => <End exchange={exchange} />) },
    { key: "took", head: "Took", width: "5rem", align: "end", wide: true, cell: ownCell(exchangeCell(({ exchange }) => <Took exchange={exchange} />)) },
  ];
  return all.filter((column) => room === "all" || column.wide !== true);
}
