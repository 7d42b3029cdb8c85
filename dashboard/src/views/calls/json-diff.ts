export type Mark = "same" | "differs" | "only A" | "only B";

export interface Difference {
  /** `structuredContent.items.0`; "" for the value itself. */
  path: string;
  mark: Mark;
  a: unknown;
  b: unknown;
}

// beyond this many lines nothing is taken apart any more, but compared as a whole
const MOST = 500;

const isBranch = (value: unknown): value is object => typeof value === "object" && value !== null;
const has = (value: object, key: string) => Object.hasOwn(value, key);

/** Where two JSON values differ, in the order of their members. What is equal as a whole stands in one line. */
export function jsonDiff(a: unknown, b: unknown): Difference[] {
  const found: Difference[] = [];
  visit("", a, b, found);
  return found;
}

function visit(path: string, a: unknown, b: unknown, found: Difference[]): void {
  if (equal(a, b)) found.push({ path, mark: "same", a, b });
  else if (!isBranch(a) || !isBranch(b) || Array.isArray(a) !== Array.isArray(b) || found.length > MOST)
    found.push({ path, mark: "differs", a, b });
  else visitMembers(path, a, b, found);
}

function visitMembers(path: string, a: object, b: object, found: Difference[]): void {
  const [ofA, ofB] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const inside = (key: string) => (path === "" ? key : `${path}.${key}`);
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (!has(b, key)) found.push({ path: inside(key), mark: "only A", a: ofA[key], b: undefined });
    else if (!has(a, key)) found.push({ path: inside(key), mark: "only B", a: undefined, b: ofB[key] });
    else visit(inside(key), ofA[key], ofB[key], found);
  }
}

/** Whether two JSON values are the same, whatever the order of their members. */
export function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isBranch(a) || !isBranch(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => has(b, key) && equal((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}
