import { expect, test } from "vitest";
import { FakeFeed } from "~/testing/fake-source";

function started() {
  const fake = new FakeFeed();
  const stop = fake.feed.start();
  return { fake, stop, now: () => (fake.frame(), fake.feed.snapshot()) };
}

const seqs = (items: readonly { key: string }[]) => items.map((item) => item.key);

test("nothing is opened before start, and stop closes it", () => {
  const fake = new FakeFeed();
  expect(fake.sources).toEqual([]);
  const stop = fake.feed.start();
  expect(fake.source.url).toBe("/dashboard/events?tables=tasks%2Ccalls%2Csessions%2Cstreams%2Chosts%2Crefusals%2Ccounts&tail=500");
  stop();
  expect(fake.source.readyState).toBe(fake.source.CLOSED);
});

test("many events make one snapshot, with the next frame", () => {
  const { fake } = started();
  let published = 0;
  fake.feed.subscribe(() => (published += 1));
  fake.source.hello("a");
  for (let seq = 1; seq <= 50; seq += 1) fake.source.entry("a", seq);
  expect(fake.feed.snapshot().items).toEqual([]);
  expect(fake.frame()).toBe(1);
  expect([published, fake.feed.snapshot().items.length]).toEqual([1, 50]);
  expect(fake.frame()).toBe(0);
});

test("what did not change keeps its identity", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 1);
  const before = now();
  fake.source.say("rows", { table: "tasks", rows: [{ id: "t1" }] });
  const after = now();
  expect(after.items).toBe(before.items);
  expect(after.tables.calls).toBe(before.tables.calls);
  expect(after.tables.tasks).not.toBe(before.tables.tasks);
});

test("an entry that came already is not shown twice", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (const seq of [1, 2, 2, 1, 3]) fake.source.entry("a", seq);
  expect(seqs(now().items)).toEqual(["a-1", "a-2", "a-3"]);
});

test("gaps stand where entries are missing", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 1);
  fake.source.say("gap", { reason: "skipped", first: 2, last: 8 }, "a-8");
  fake.source.entry("a", 9);
  const items = now().items;
  expect(items.map((item) => (item.type === "gap" ? item.gap : item.entry.seq))).toEqual([
    1,
    { reason: "skipped", first: 2, last: 8 },
    9,
  ]);
});

test("the newest 10,000 are kept and all are counted", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (let seq = 1; seq <= 25_000; seq += 1) fake.source.entry("a", seq);
  const { items, total } = now();
  expect([items.length, items[0]?.key, items.at(-1)?.key, total]).toEqual([10_000, "a-15001", "a-25000", 25_000]);
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
  const { items, tables, hello } = now();
  expect(seqs(items)).toEqual(["a-5", "b-gap-1", "b-1"]);
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

test("clear forgets the items, and what comes next is shown", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 1);
  now();
  fake.feed.clear();
  expect(now().items).toEqual([]);
  fake.source.entry("a", 2);
  expect(seqs(now().items)).toEqual(["a-2"]);
});

test("ids with more digits than a double holds are not mixed up", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (const [index, id] of ["9007199254740993", "9007199254740992"].entries()) {
    const data = `{"seq":${index + 1},"kind":"message.received","id":${id}}`;
    fake.source.dispatchEvent(new MessageEvent("message", { data, lastEventId: `a-${index + 1}` }));
  }
  const ids = now().items.map((item) => (item.type === "entry" && "id" in item.entry ? item.entry.id : null));
  expect(ids).toEqual([9007199254740993n, 9007199254740992n]);
});

const asked = (url: string) => Object.fromEntries(new URLSearchParams(url.split("?")[1]));

test("only one session's entries are asked for, behind what is known already", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  for (const seq of [1, 2, 3]) fake.source.entry("a", seq);
  const before = fake.source;
  fake.feed.only("s1");
  expect(before.readyState).toBe(before.CLOSED);
  expect(asked(fake.source.url)).toMatchObject({ since: "a-3", session: "s1" });
  fake.source.hello("a", { resumed: true });
  fake.source.entry("a", 7);
  expect(seqs(now().items)).toEqual(["a-1", "a-2", "a-3", "a-7"]);
  expect(now().narrowed).toEqual({ session: "s1", after: 3 });
  fake.feed.only("s1");
  expect(fake.sources.length).toBe(2);
});

test("another session, or all of them again, begins where entries began to be left out", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 3);
  fake.feed.only("s1");
  fake.source.entry("a", 7);
  fake.feed.only("s2");
  expect(asked(fake.source.url)).toMatchObject({ since: "a-3", session: "s2" });
  expect(seqs(now().items)).toEqual(["a-3"]);
  fake.source.entry("a", 5);
  fake.feed.only(null);
  expect(asked(fake.source.url)).toMatchObject({ since: "a-3" });
  expect(asked(fake.source.url)["session"]).toBeUndefined();
  for (const seq of [4, 5, 6, 7]) fake.source.entry("a", seq);
  expect(seqs(now().items)).toEqual(["a-3", "a-4", "a-5", "a-6", "a-7"]);
  expect(now().narrowed).toBeNull();
});

test("a place in an earlier run is not gone back to", () => {
  const { fake, now } = started();
  fake.source.hello("a");
  fake.source.entry("a", 3);
  fake.feed.only("s1");
  fake.source.hello("b");
  fake.source.say("gap", { reason: "restarted", first: null, last: null }, "b-0");
  fake.source.entry("b", 2);
  fake.feed.only(null);
  expect(asked(fake.source.url)["since"]).toBeUndefined();
  fake.source.entry("b", 1);
  expect(seqs(now().items).at(0)).toBe("a-3");
  expect(seqs(now().items).at(-1)).toBe("b-1");
});

test("before it is started, and after it is stopped, a choice of session opens nothing", () => {
  const { fake, stop } = started();
  stop();
  fake.feed.only("s1");
  expect(fake.sources.length).toBe(1);
  fake.feed.start();
  expect(asked(fake.source.url)["session"]).toBe("s1");
});

test("what was cleared does not come back with another choice of session", () => {
  const { fake } = started();
  fake.source.hello("a");
  fake.feed.only("s1");
  fake.source.entry("a", 9);
  fake.feed.clear();
  fake.feed.only(null);
  expect(asked(fake.source.url)["since"]).toBe("a-9");
});
