import { expect, test } from "vitest";
import type { EntryView } from "~/protocol/schema";
import { FakeFeed } from "~/testing/fake-source";
import type { Snapshot } from "./feed";

function started() {
  const fake = new FakeFeed();
  const stop = fake.feed.start();
  return { fake, stop, now: () => (fake.frame(), fake.feed.snapshot()) };
}

const keys = ({ trace }: Snapshot) => trace.runs.flatMap(({ entries }) => entries.map(({ key }) => key));

test("nothing is opened before start, and stop closes it", () => {
  const fake = new FakeFeed();
  expect(fake.sources).toEqual([]);
  const stop = fake.feed.start();
  expect(fake.source.url).toBe("/dashboard/events?tables=tasks%2Ccalls%2Csessions%2Cstreams%2Chosts%2Crefusals%2Ccounts&tail=500&view=1");
  stop();
  expect(fake.source.readyState).toBe(fake.source.CLOSED);
});

test("many events make one snapshot, with the next frame", () => {
  const { fake } = started();
  let published = 0;
  fake.feed.subscribe(() => (published += 1));
  fake.source.hello("a");
  for (let seq = 1; seq <= 50; seq += 1) fake.source.entry("a", seq);
  expect(keys(fake.feed.snapshot())).toEqual([]);
  expect(fake.frame()).toBe(1);
  expect([published, keys(fake.feed.snapshot()).length]).toEqual([1, 50]);
  expect(fake.frame()).toBe(0);
});

test("what did not change keeps its identity", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 1);
  const before = now();
  fake.source.say("rows", { table: "tasks", rows: [{ id: "t1" }] });
  const after = now();
  expect(after.trace.runs[0]?.entries).toBe(before.trace.runs[0]?.entries);
  expect(after.tables.calls).toBe(before.tables.calls);
  expect(after.tables.tasks).not.toBe(before.tables.tasks);
});

test("an entry that came already is not shown twice", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (const seq of [1, 2, 2, 1, 3]) fake.source.entry("a", seq);
  expect(keys(now())).toEqual(["a-1", "a-2", "a-3"]);
});

test("the status says what the connection is", () => {
  const { fake, now } = started();
  expect(now().status).toBe("connecting");
  fake.source.fail();
  expect(now().status).toBe("connecting");
  fake.source.hello("a");
  expect(now().status).toBe("live");
  fake.source.fail();
  expect(now().status).toBe("stale");
  fake.source.hello("a", { resumed: true });
  expect(now().status).toBe("live");
  fake.source.fail(true);
  expect(now().status).toBe("closed");
});

test("after a refusal it connects again behind the last entry, each time later", () => {
  const { fake } = started();
  fake.source.hello("a");
  fake.source.entry("a", 7);
  const waits = [];
  for (let attempt = 0; attempt < 6; attempt += 1) {
    fake.source.fail(true);
    const delay = fake.delays.at(-1);
    waits.push(delay?.ms);
    delay?.callback();
  }
  expect(waits).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000]);
  expect(new URLSearchParams(fake.source.url.split("?")[1]).get("since")).toBe("a-7");
});

test("a stop ends the attempts", () => {
  const { fake, stop } = started();
  fake.source.fail(true);
  expect(fake.delays.length).toBe(1);
  stop();
  expect(fake.delays).toEqual([]);
});

test("a new run counts from the beginning and empties the tables", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 5);
  fake.source.say("rows", { table: "tasks", rows: [{ id: "t1" }] });
  fake.source.fail();
  fake.source.hello("b");
  fake.source.say("gap", { reason: "restarted", first: null, last: null }, "b-0");
  fake.source.entry("b", 1);
  const { trace, tables, hello } = now();
  expect(trace.runs.map(({ run, gaps, entries }) => [run, gaps.map(({ reason }) => reason), entries.map(({ key }) => key)])).toEqual([
    ["a", [], ["a-5"]],
    ["b", ["restarted"], ["b-1"]],
  ]);
  expect([tables.tasks, hello?.run]).toEqual([[], "b"]);
});

test("a new connection replaces the rows, later ones change them in place", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.say("rows", { table: "tasks", rows: [{ id: "t1" }, { id: "t2" }] });
  fake.source.say("rows", { table: "tasks", rows: [{ id: "t1", status: "failed" }] });
  expect(now().tables.tasks).toEqual([{ id: "t1", status: "failed" }, { id: "t2" }]);
  fake.source.fail();
  fake.source.hello("a", { resumed: true });
  fake.source.say("rows", { table: "tasks", rows: [{ id: "t2" }] });
  expect(now().tables.tasks).toEqual([{ id: "t2" }]);
});

test("rows of a table that this page does not know are left alone", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.say("rows", { table: "hosts", rows: [{ id: "h" }] });
  expect(Object.keys(now().tables)).toEqual(["tasks", "calls", "sessions", "streams", "hosts", "refusals", "counts"]);
});

test("ids with more digits than a double holds are not mixed up", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (const [index, id] of ["9007199254740993", "9007199254740992"].entries()) {
    const data = `{"seq":${index + 1},"kind":"message.received","id":${id},"view":{"exchange":${index},"delivers":[]}}`;
    fake.source.dispatchEvent(new MessageEvent("message", { data, lastEventId: `a-${index + 1}` }));
  }
  const ids = now().trace.runs[0]?.entries.map(({ entry }) => ("id" in entry ? entry.id : null));
  expect(ids).toEqual([9007199254740993n, 9007199254740992n]);
});

const asked = (url: string) => Object.fromEntries(new URLSearchParams(url.split("?")[1]));

const marked = (passes: boolean): { view: EntryView } => ({ view: { exchange: 1, on_wire: true, group: "messages", problem: null, direction: null, method: null, delivered: null, delivers: [], cancelled_how: null, passes } });

test("a filter line is asked for from the place on that a search has come to, and marks what passes", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (const seq of [1, 2, 3]) fake.source.entry("a", seq);
  const before = fake.source;
  fake.feed.filter("tool:x", 2);
  expect(before.readyState).toBe(before.CLOSED);
  expect(asked(fake.source.url)).toMatchObject({ since: "a-2", passes: "tool:x", view: "1" });
  fake.source.hello("a", { resumed: true });
  fake.source.entry("a", 3, marked(true));
  fake.source.entry("a", 4, marked(false));
  const { trace } = now();
  expect([keys(now()), [...trace.passing.entries], trace.passing.line, trace.total]).toEqual([["a-1", "a-2", "a-3", "a-4"], ["a-3"], "tool:x", 4]);
  fake.feed.filter("tool:x");
  expect(fake.sources.length).toBe(2);
  fake.feed.filter("");
  expect([asked(fake.source.url)["passes"], asked(fake.source.url)["since"], now().trace.passing.entries.size]).toEqual([undefined, "a-4", 0]);
});

test("before it is started, and after it is stopped, a filter line opens nothing", () => {
  const { fake, stop } = started();
  stop();
  fake.feed.filter("ping");
  expect(fake.sources.length).toBe(1);
  fake.feed.start();
  expect(asked(fake.source.url)["passes"]).toBe("ping");
});
