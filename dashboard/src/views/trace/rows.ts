import { useMemo } from "react";
import { type Gap, type Kept, progressOf, type Span, type Viewed } from "~/trace/entry";
import type { Trace } from "~/trace/trace";
import { endingOf } from "~/words/spans";

/** A row of a list: an exchange or an entry, or below an open exchange its messages, or several reports of progress as one. */
export type Row =
  | { type: "span"; key: string; span: Span; under?: true }
  | { type: "message"; key: string; span: Span; entry: Viewed; level: 2 | 3 }
  | { type: "progress"; key: string; span: Span; entries: readonly Viewed[] }
  // exchanges of one client that ended in the same way
  | { type: "repeat"; key: string; spans: readonly Span[] }
  | ({ type: "entry" } & Kept)
  | { type: "gap"; key: string; gap: Gap }
  // leads to what is older
  | { type: "older"; key: "older" };

/** The first exchange that a row is about; null for other rows. */
export function spanOf(row: Row): Span | null {
  if (row.type === "repeat") return row.spans[0] ?? null;
  return row.type === "span" || row.type === "message" || row.type === "progress" ? row.span : null;
}

/** Where a row stands in the tree: reports of progress are below the row that stands for them. */
export function levelOf(row: Row): number {
  if (row.type === "message") return row.level;
  return row.type === "progress" || (row.type === "span" && row.under === true) ? 2 : 1;
}

/** Whether a row is open; undefined for one that has nothing below it. */
export function isOpen(row: Row, open: ReadonlySet<string>): boolean | undefined {
  if (row.type === "progress" || row.type === "repeat") return open.has(row.key);
  // one message has nothing below it: its own row says all of it
  return row.type === "span" && row.under !== true && (row.span.answer !== null || row.span.row.exchange > 0) ? open.has(row.key) : undefined;
}

/** The entry that a row shows when it is chosen; null for a row that shows none. */
export function chosenBy(row: Row): { run: string; seq: number } | null {
  if (row.type === "span") return { run: row.span.run, seq: row.span.row.head };
  if (row.type === "message") return { run: row.span.run, seq: row.entry.seq };
  return row.type === "entry" ? { run: row.run, seq: row.entry.seq } : null;
}

interface Options {
  trace: Trace;
  lines: readonly (Span | Kept)[];
  gaps: readonly Gap[];
  /** Those with a smaller number are left out. */
  cleared: Cleared | null;
  open: ReadonlySet<string>;
  /** Whether exchanges that are equal are put together. */
  repeats: boolean;
  /** Entries that tell of deliveries are left out where their messages say it. */
  fold: boolean;
  order: "oldest" | "newest";
}

/** The place behind which the view was cleared. */
export interface Cleared {
  run: string;
  seq: number;
  /** When, in seconds since the epoch. */
  at: number;
}

/** The rows of a list in their order. */
export function useRows({ trace, lines, gaps, cleared, open, repeats, fold, order }: Options): readonly Row[] {
  const first = useMemo(() => withGaps(lines, gaps, cleared, fold), [lines, gaps, cleared, fold]);
  const grouped = useMemo(() => (repeats ? repeated(first) : first), [first, repeats]);
  return useMemo(() => {
    const rows = open.size === 0 ? grouped : grouped.flatMap((row) => unfolded(row, open, trace));
    return order === "oldest" ? [OLDER, ...rows] : [...backward(rows), OLDER];
  }, [grouped, open, trace, order]);
}

// what is not changed is the same row again, and is not drawn again
const ROWS = new WeakMap<Span | Kept, Row>();

function rowOf(line: Span | Kept): Row {
  const known = ROWS.get(line);
  if (known !== undefined) return known;
  const row: Row = isSpan(line) ? { type: "span", key: line.key, span: line } : { type: "entry", ...line };
  ROWS.set(line, row);
  return row;
}

const OLDER: Row = { type: "older", key: "older" };

const isSpan = (line: Span | Kept): line is Span => "row" in line;
const seqOf = (line: Span | Kept) => (isSpan(line) ? line.row.began.seq : line.entry.seq);

/** The number of what begins a line. */
export function isCleared(line: Span | Kept, cleared: Cleared | null): boolean {
  return cleared !== null && (line.run !== cleared.run || seqOf(line) <= cleared.seq);
}

function withGaps(lines: readonly (Span | Kept)[], gaps: readonly Gap[], cleared: Cleared | null, fold: boolean): readonly Row[] {
  const rows: Row[] = [];
  const left = gaps.filter((gap) => cleared === null || (gap.run === cleared.run && (gap.last ?? 0) > cleared.seq));
  const put = (before: (gap: Gap) => boolean) => {
    for (let gap = left[0]; gap !== undefined && before(gap); gap = left[0]) {
      left.shift();
      rows.push({ type: "gap", key: gap.key, gap });
    }
  };
  let run = "";
  for (const line of lines) {
    // the gaps of a run before this one, and those in this one before the line
    if (line.run !== run) put((gap) => gap.run === run);
    run = line.run;
    put((gap) => gap.run === run && (gap.last ?? 0) < seqOf(line));
    if (isCleared(line, cleared)) continue;
    if (isSpan(line) || !(fold && line.entry.view.delivers.length > 0)) rows.push(rowOf(line));
  }
  put(() => true);
  return rows;
}

/** Rows from the newest on, each with those below it behind it. */
function backward(rows: readonly Row[]): readonly Row[] {
  const parts: Row[][] = [];
  for (const row of rows) {
    if (levelOf(row) === 1) parts.push([row]);
    else parts.at(-1)?.push(row);
  }
  return parts.toReversed().flat();
}

/** Rows with those that are equal but for numbers and names put together, in the places of their first. */
function repeated(rows: readonly Row[]): readonly Row[] {
  const groups = new Map<string, Span[]>();
  const found = rows.map((row) => {
    if (row.type !== "span") return row;
    const mark = signature(row.span);
    const group = groups.get(mark);
    groups.set(mark, group ?? []);
    groups.get(mark)?.push(row.span);
    return group === undefined ? mark : null;
  });
  return found.flatMap((each): readonly Row[] => {
    if (typeof each !== "string") return each === null ? [] : [each];
    const spans = groups.get(each) ?? [];
    const [first] = spans;
    if (first === undefined) return [];
    return [spans.length === 1 ? rowOf(first) : { type: "repeat", key: `${first.key}-repeated`, spans }];
  });
}

/** What equal rows have in common: ids and amounts differ from one to the next. */
function signature(span: Span): string {
  const { session, method, request, unreadable, status } = span.row;
  const { mark, text } = endingOf(span);
  return JSON.stringify([span.run, session, method ?? request, unreadable, status, mark?.text, text.replaceAll(/'[^']*'|"[^"]*"|\d+(?:\.\d+)?/g, "…")]);
}

function unfolded(row: Row, open: ReadonlySet<string>, trace: Trace): readonly Row[] {
  if (!open.has(row.key)) return [row];
  if (row.type === "repeat") return [row, ...row.spans.map((span) => ({ type: "span" as const, key: span.key, span, under: true as const }))];
  return row.type === "span" ? [row, ...messagesBelow(row.span, open, trace)] : [row];
}

function messagesBelow(span: Span, open: ReadonlySet<string>, trace: Trace): readonly Row[] {
  const { run, row } = span;
  const message = (entry: Viewed, level: 2 | 3): Row => ({ type: "message", key: `${run}-${entry.seq}`, span, entry, level });
  const parts = inParts(trace.entriesOf(run, row.exchange).filter(({ view, kind }) => view.on_wire && kind !== "message.delivered"));
  return parts.flatMap((entries) => {
    const [first] = entries;
    if (first === undefined) return [];
    if (entries.length === 1) return [message(first, 2)];
    const key = `${run}-p${first.seq}`;
    const progress: Row = { type: "progress", key, span, entries };
    const below: Row[] = open.has(key) ? entries.map((entry) => message(entry, 3)) : [];
    below.unshift(progress);
    return below;
  });
}

/** The entries in their order; reports of progress that follow each other are one part. */
function inParts(entries: readonly Viewed[]): readonly (readonly Viewed[])[] {
  const parts: Viewed[][] = [];
  for (const entry of entries) {
    const before = parts.at(-1);
    if (progressOf(entry) !== null && before?.[0] !== undefined && progressOf(before[0]) !== null) before.push(entry);
    else parts.push([entry]);
  }
  return parts;
}
