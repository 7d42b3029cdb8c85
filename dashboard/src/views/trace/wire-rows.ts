import type { Entry } from "~/protocol/schema";
import { type Exchange, type WireLine, factsOf, isOnWire, isProgress } from "./exchanges";
import type { ListRow } from "./merge";
import type { Repeat } from "./repeats";

/** A row of the wire: an exchange, or below an open one its messages, or several reports of progress as one. */
export type WireRow =
  | { type: "exchange"; key: string; exchange: Exchange; under?: true }
  | { type: "message"; key: string; exchange: Exchange; entry: Entry; level: 2 | 3 }
  | { type: "progress"; key: string; exchange: Exchange; entries: readonly Entry[] };

/** A row of either list of Live. An exchange `under` a repeat stands below that, and does not unfold. */
export type LiveRow = ListRow | WireRow | Repeat;

/** Where a row stands in the tree: reports of progress are below the row that stands for them. */
export function levelOf(row: LiveRow): number {
  if (row.type === "message") return row.level;
  if (row.type === "exchange" && row.under === true) return 2;
  return row.type === "progress" ? 2 : 1;
}

/** Whether a row is open; undefined for one that has nothing below it. */
export function isOpen(row: LiveRow, open: ReadonlySet<string>): boolean | undefined {
  if (row.type === "progress" || row.type === "repeat") return open.has(row.key);
  return row.type === "exchange" && row.under !== true && below(row.exchange).length > 1 ? open.has(row.key) : undefined;
}

/** The rows of these lines, with those below the open ones. */
export function rowsOf(lines: readonly (WireLine | ListRow | Repeat)[], open: ReadonlySet<string>): readonly LiveRow[] {
  if (open.size === 0) return lines;
  return lines.flatMap((line): readonly LiveRow[] => {
    if (!open.has(line.key)) return [line];
    if (line.type === "repeat") return [line, ...line.exchanges.map((exchange) => ({ type: "exchange" as const, key: exchange.key, exchange, under: true as const }))];
    return line.type === "exchange" ? [line, ...unfolded(line.exchange, open)] : [line];
  });
}

function below({ entries }: Exchange): readonly Entry[] {
  return entries.filter(isOnWire);
}

function unfolded(exchange: Exchange, open: ReadonlySet<string>): readonly WireRow[] {
  const { run } = exchange;
  const rows: WireRow[] = [];
  const message = (entry: Entry, level: 2 | 3): WireRow => ({ type: "message", key: `${run}-${entry.seq}`, exchange, entry, level });
  for (const part of runsOfProgress(below(exchange))) {
    const [first] = part;
    if (first === undefined) continue;
    if (part.length === 1) {
      rows.push(message(first, 2));
      continue;
    }
    const key = `${run}-p${first.seq}`;
    rows.push({ type: "progress", key, exchange, entries: part });
    if (open.has(key)) rows.push(...part.map((entry) => message(entry, 3)));
  }
  return rows;
}

/** The entries in their order; reports of progress that follow each other are one part. */
function runsOfProgress(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  const parts: Entry[][] = [];
  for (const entry of entries) {
    const before = parts.at(-1);
    if (isProgress(entry) && before?.[0] !== undefined && isProgress(before[0])) before.push(entry);
    else parts.push([entry]);
  }
  return parts;
}

/** The entry that a row shows when it is chosen; null for a row that shows none. */
export function entryOf(row: LiveRow): { run: string; entry: Entry } | null {
  switch (row.type) {
    case "entry":
      return { run: row.run, entry: row.entry };
    case "exchange":
      return { run: row.exchange.run, entry: factsOf(row.exchange).head };
    case "message":
      return { run: row.exchange.run, entry: row.entry };
    default:
      return null;
  }
}
