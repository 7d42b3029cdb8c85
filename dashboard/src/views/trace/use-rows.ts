import { useMemo, useState } from "react";
import type { Word } from "~/protocol/filter";
import type { Entry } from "~/protocol/schema";
import { type Exchange, type WireLine, ExchangesOfRuns } from "./exchanges";
import type { Known } from "./known";
import type { Line } from "./merge";
import { type Repeat, repeated } from "./repeats";
import type { LiveUrl } from "./use-live-url";
import { type Wanted, wanted } from "./wanted";
import { type LiveRow, rowsOf } from "./wire-rows";

interface Options {
  url: Pick<LiveUrl, "view" | "order" | "fold">;
  words: readonly Word[];
  lines: readonly Line[];
  known: Known;
  open: ReadonlySet<string>;
  /** Whether exchanges that are equal are put together. */
  repeats: boolean;
}

/** The rows of the list in their order, and how many exchanges or entries are among them. */
export function useRows({ url, words, lines, known, open, repeats }: Options): { rows: readonly LiveRow[]; listed: number } {
  const { view, order, fold } = url;
  const [exchanges] = useState(() => new ExchangesOfRuns());
  const grouped = useMemo(() => exchanges.group(lines, known.runs), [exchanges, lines, known]);
  const passing = useMemo(() => {
    const want = words.length === 0 ? null : wanted(words, known);
    return view === "wire" ? wireOf(grouped.wire, want) : entriesOf(lines, grouped.all, want, fold, known);
  }, [view, words, known, grouped, lines, fold]);
  const listed = useMemo(() => passing.filter((line) => line.type !== "gap").length, [passing]);
  const rows = useMemo(() => inOrder(repeats ? repeated(passing as readonly WireLine[], known) : passing, open, order), [passing, repeats, known, open, order]);
  return { rows, listed };
}

function wireOf(lines: readonly WireLine[], want: Wanted | null): readonly WireLine[] {
  return want === null ? lines : lines.filter((line) => line.type === "gap" || want.exchange(line.exchange));
}

function entriesOf(lines: readonly Line[], exchanges: readonly Exchange[], want: Wanted | null, fold: boolean, known: Known): readonly Line[] {
  const isFolded = ({ entry, run }: Extract<Line, { type: "entry" }>) => fold && entry.kind === "message.delivered" && known.relations(run).folds(entry);
  if (want === null) return lines.filter((line) => line.type === "gap" || !isFolded(line));
  const passing = new Set<Entry>();
  for (const exchange of exchanges) {
    if (!want.around(exchange)) continue;
    for (const entry of exchange.entries) if (want.entry(entry, exchange.run)) passing.add(entry);
  }
  return lines.filter((line) => line.type === "gap" || (passing.has(line.entry) && !isFolded(line)));
}

const OLDER: LiveRow = { type: "older", key: "older" };

/** The rows of lines that stand oldest first, in the order that is wanted. */
function inOrder(lines: readonly (WireLine | Line | Repeat)[], open: ReadonlySet<string>, order: "oldest" | "newest"): readonly LiveRow[] {
  return order === "oldest" ? [OLDER, ...rowsOf(lines, open)] : [...rowsOf(lines.toReversed(), open), OLDER];
}
