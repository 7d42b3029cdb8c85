import { expect, test } from "vitest";
import type { Entry } from "~/api/schema";
import cases from "~/testing/groups.json";
import { countsRow } from "~/testing/rows";
import { GROUPS, bit, groupsOf } from "./facts";
import { type Counts, filtersOf } from "./filters";
import { loadedOf, numbersOf } from "./numbers";

// the server sorts deliveries apart, which the list of this page folds
test.each(cases)("an entry is in the groups that the server counts it in: $entry", ({ entry, groups }) => {
  const wanted = groups.map((group) => (group === "deliveries" ? "messages" : group));
  expect(GROUPS.filter((group) => groupsOf(entry as unknown as Entry) & bit(group)).toSorted()).toEqual(wanted.toSorted());
});

const groups = { messages: 1, http: 0, calls: 0, tasks: 0, streams: 0, sessions: 0, hosts: 0, server: 0, problems: 0 };
const COUNTS: Counts = { groups, direction: { in: 1, out: 0 }, sessions: new Map([["s1", 1]]), methods: new Map(), folded: 0, entries: 1 };
const KEPT = countsRow({ entries: 12_913, problems: 27, messages: 5_000, deliveries: 2_000, received: 3_000, sent: 4_000 });
const LOADED = { entries: 500, others: 0 };

function numbers(query: string, kept: typeof KEPT | undefined = KEPT, loaded = LOADED) {
  return numbersOf(COUNTS, kept, loaded, filtersOf(new URLSearchParams(query)));
}

test("the numbers are of the whole log, as the server counts it, where the page has a part of it", () => {
  expect(numbers("")).toMatchObject({
    groups: { problems: 27, messages: 5_000 },
    direction: { in: 3_000, out: 4_000 },
    sessions: null,
    of: "all 12,913 entries in the log; 500 are loaded",
  });
  expect(numbers("deliveries=rows")).toMatchObject({ groups: { messages: 7_000 }, direction: { out: 6_000 } });
});

test("a choice of groups leaves their numbers, and takes those of what it leaves out", () => {
  expect(numbers("show=problems")).toMatchObject({ groups: { problems: 27 }, direction: null });
});

test.each(["session=s1", "direction=in", "method=ping", "text=x", "call=c1"])("under %s the numbers are of the loaded entries, which is said", (query) => {
  expect(numbers(query)).toMatchObject({ groups: { problems: 0 }, direction: { in: 1 }, of: "the 500 loaded entries; the log has 12,913" });
});

test("a page that has the whole log counts it itself, under every filter", () => {
  const kept = countsRow({ entries: 500, problems: 27 });
  expect(numbers("text=x", kept)).toMatchObject({ groups: { problems: 0 }, of: "all 500 entries in the log" });
  expect(numbers("", kept, { entries: 500, others: 200 })).toMatchObject({ groups: { problems: 27 } });
});

const entryOf = (run: string, seq: number) => ({ type: "entry", key: `${run}-${seq}`, run, entry: { seq } as Entry }) as const;

test("gaps are no entries, and entries of earlier runs are not in the log", () => {
  const gap = { type: "gap", key: "g", run: "b", gap: { reason: "evicted", first: 1, last: 2 } } as const;
  expect(loadedOf([entryOf("a", 1), gap, entryOf("b", 3)], "b")).toEqual({ entries: 2, others: 1 });
});
