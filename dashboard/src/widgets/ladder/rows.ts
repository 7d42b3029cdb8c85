import { formatClock, formatDuration, formatOffset } from "~/ui/time-format";
import { list } from "~/words/messages";
import { endOf, type LaneKey, type Step } from "./steps";

/** A line of the ladder: one step, or several of the same kind as one. */
export interface Row {
  /** Unique on the ladder, and the same as long as the first step is. */
  key: string;
  steps: readonly [Step, ...Step[]];
  /** Whether the steps of a fold are shown below it; null for a single step. */
  open: boolean | null;
}

/** As many of a kind are folded. */
const LEAST = 3;

/** The lines of the ladder. Steps of one kind are folded where nothing else lies between them; `open` has the keys of folds that show theirs. */
export function rowsOf(steps: readonly Step[], open: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  let run: Step[] = [];
  const flush = () => {
    if (run.length > 0) rows.push(...foldedRows(run, open));
    run = [];
  };
  for (const step of steps) {
    if (step.fold === null) {
      flush();
      rows.push(single(step));
    } else {
      run.push(step);
    }
  }
  flush();
  return rows;
}

const single = (step: Step): Row => ({ key: String(step.seq), steps: [step], open: null });

/** Two calls that report in turn are a fold each, beside each other, by their first steps. */
function foldedRows(run: readonly Step[], open: ReadonlySet<string>): Row[] {
  const groups = [...Map.groupBy(run, (step) => step.fold).values()] as [Step, ...Step[]][];
  return groups
    .flatMap((group): Row[] => {
      if (group.length < LEAST) return group.map(single);
      const key = `${group[0].seq}+`;
      const shown = open.has(key);
      const fold: Row = { key, steps: group, open: shown };
      return shown ? [fold].concat(group.map(single)) : [fold];
    })
    .toSorted((a, b) => a.steps[0].seq - b.steps[0].seq);
}

/** Where the row of an entry is, also where it is folded; -1 for none. */
export function indexOf(rows: readonly Row[], seq: number): number {
  const exact = rows.findIndex(({ steps, open }) => open === null && steps[0].seq === seq);
  return exact === -1 ? rows.findIndex(({ steps }) => steps.some((step) => step.seq === seq)) : exact;
}

/** What stands at a row: first what it is, then the rest. Where there is little room, the beginning and the `end` of the rest are shown. */
interface Label {
  title: string;
  rest: string;
  end: string;
}

export function labelOf({ steps, open }: Row): Label {
  const [first] = steps;
  if (open === null) return { title: first.title, rest: list(first.id !== null && `id ${first.id}`, first.text, endOf(first)), end: endOf(first) };
  const last = steps.at(-1) ?? first;
  const range = `${short(first)} to ${short(last)}`;
  return { title: `${steps.length} × ${first.title}`, rest: list(range, `within ${formatDuration((last.at - first.at) * 1000)}`, fates(steps)), end: fates(steps) };
}

// the token is that of the request, and the same in all of them
const short = ({ text }: Step) => text.split(" · token", 1)[0] ?? text;

function fates(steps: Row["steps"]): string {
  const [{ fate }] = steps;
  if (fate === null) return "";
  if (fate.what === "received") return "all received";
  return fate.what === "dropped" ? `none sent: ${fate.why}` : `none ${fate.what.replace("not ", "")}`;
}

/** How lanes are called. */
export type Names = ReadonlyMap<LaneKey, string>;

/** When a row was: the wall clock, or the distance from the beginning of a call. */
export function timeOf({ steps: [first] }: Row, origin: Step | undefined): string {
  return origin === undefined ? formatClock(first.clock) : formatOffset((first.at - origin.at) * 1000);
}

/** A row as a sentence. */
export function sentenceOf(row: Row, names: Names, origin: Step | undefined): string {
  const [first] = row.steps;
  const { title, rest } = labelOf(row);
  const name = (lane: LaneKey) => names.get(lane) ?? lane;
  const where = first.from === first.to ? `at ${name(first.from)}` : `from ${name(first.from)} to ${name(first.to)}`;
  return `${timeOf(row, origin)}, ${where}: ${title}${rest === "" ? "" : ` · ${rest}`}`;
}

/** Whether a row has a text, which is in lower case, in its label or in the payload of one of its messages. */
export function hasText(row: Row, text: string): boolean {
  return row.steps.some((step) => `${step.title} ${step.id ?? ""} ${step.text} ${payloadOf(step)}`.toLowerCase().includes(text));
}

const payloads = new WeakMap<object, string>();

function payloadOf({ entry }: Step): string {
  if (!("message" in entry)) return "";
  const before = payloads.get(entry);
  if (before !== undefined) return before;
  // to search in, not to show: a number that loses digits here does not matter
  const text = JSON.stringify(entry.message, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value)) ?? "";
  payloads.set(entry, text);
  return text;
}
