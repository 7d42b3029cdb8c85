import { expect, test } from "vitest";
import { read } from "~/protocol/filter";
import type { Entry } from "~/protocol/schema";
import table from "~/testing/filter-lines.json";
import log from "~/testing/filter-log.json";
import groups from "~/testing/groups.json";
import { Story } from "~/testing/story";
import { ExchangesOfRuns } from "./exchanges";
import { Known } from "./known";
import type { Line } from "./merge";
import { GROUPS, lineOf } from "./old-links";
import { problemOf } from "./problems";
import { RelationsOfRuns } from "./relations";
import { repeated } from "./repeats";
import { wanted } from "./wanted";

const asLines = (entries: readonly Entry[], run = "a"): readonly Line[] => entries.map((entry) => ({ type: "entry", key: `${run}-${entry.seq}`, run, entry }));

function searched(lines: readonly Line[], run = "a") {
  const runs = new RelationsOfRuns().extend(lines);
  const known = new Known(run, runs, []);
  const { wire, all } = new ExchangesOfRuns().group(lines, runs);
  const find = (line: string) => {
    const want = wanted(read(line), known);
    const exchanges = wire.filter((each) => each.type === "exchange" && want.exchange(each.exchange));
    const entries = all.filter((exchange) => want.around(exchange)).flatMap((exchange) => exchange.entries.filter((entry) => want.entry(entry, exchange.run)));
    return { exchanges, entries };
  };
  return { find, wire, known };
}

const { find } = searched(asLines(log as unknown as readonly Entry[]));

test.each(table.find)("what the server finds, too: $line", ({ line, exchanges, entries }) => {
  const found = find(line);
  expect(found.exchanges.map((each) => (each.type === "exchange" ? each.exchange.entries[0]?.exchange : null))).toEqual(exchanges);
  expect(found.entries.map(({ seq }) => seq).toSorted((a, b) => a - b)).toEqual(entries);
});

test.each(groups)("whose doing it is, as the server counts it: $entry", ({ entry, problem }) => {
  expect(problemOf(entry as unknown as Entry)).toBe(problem);
});

test.each(Object.entries(GROUPS))("the chip of %s lists the kinds that the server counts in it", (name, kinds) => {
  const own = name === "messages" ? ["messages", "deliveries"] : [name.toLowerCase()];
  const context = { exchange: null, session: null, label: null, call: null, task: null, stream: null, connection: null, cause: null, mono: 0 };
  const entries = groups.map(({ entry }, index) => ({ ...context, ...entry, seq: index + 1 }) as unknown as Entry);
  const listed = searched(asLines(entries)).find(`kind:${kinds.join(",")}`).entries.map(({ kind }) => kind);
  expect(new Set(listed)).toEqual(new Set(groups.filter((each) => own.includes(each.groups[0] ?? "")).map(({ entry }) => entry.kind)));
});

test("the label of a session of an earlier run is somebody else", () => {
  const story = new Story();
  story.opened("s1", "one");
  story.call("s1", 1, 0, 1);
  const { find: search } = searched([...asLines(story.entries, "old"), ...asLines(story.entries, "new")], "new");
  expect(search("client:s1").exchanges.map(({ key }) => key)).toEqual(["new-x1"]);
  expect(search("client:old/s1").exchanges.map(({ key }) => key)).toEqual(["old-x1"]);
  expect(search("client:one").exchanges.length).toBe(2);
});

test("an exchange that is about two clients is one of both", () => {
  const story = new Story();
  story.request("s2", 1, "stream/resume");
  story.add({ kind: "stream.resumed", session: "s1", stream: "p1", exchange: 1, after: 3, waiting: 1 });
  const { find: search } = searched(asLines(story.entries));
  expect(search("client:s1 kind:stream").entries.map(({ kind }) => kind)).toEqual(["stream.resumed"]);
  expect([search("client:s1").exchanges.length, search("client:s2").exchanges.length]).toEqual([1, 1]);
});

test.each([
  ["session=s1&show=calls,problems", "client:s1 kind:call,dispatch problem:any"],
  ["stream=s1/p1", "stream:s1/p1"],
  ["text=two words&filter=client:m1", '"two words" client:m1'],
  ["call=c7&at=a-9", "call:c7"],
  ["", ""],
])("a link of another page, %s, is the line %s", (query, line) => expect(lineOf(new URLSearchParams(query))).toBe(line));

test("equal mistakes of a client are one line, with the first and the last; others stay apart", () => {
  const story = new Story();
  const times: number[] = [];
  for (const session of ["s1", "s1", "s2", "s1"]) {
    const { exchange } = story.request(session, times.length, "ping");
    times.push(story.add({ kind: "client.misuse", session, what: "id used before", clause: "c", detail: `id '${times.length}' of ping`, exchange }));
  }
  story.request("s1", 9, "ping");
  const { wire, known } = searched(asLines(story.entries));
  const lines = repeated(wire, known);
  expect(lines.map((line) => (line.type === "repeat" ? line.exchanges.map(({ key }) => key) : line.key))).toEqual([["a-x1", "a-x2", "a-x4"], "a-x3", "a-x5"]);
});
