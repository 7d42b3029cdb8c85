import type { Step } from "./steps";

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
