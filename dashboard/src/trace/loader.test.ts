import { expect, test, vi } from "vitest";
import { rowsOf, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { FakeFeed } from "~/testing/fake-source";
import { Loader } from "./loader";
import { entriesOf, spansOf } from "./use-trace";

/** A loader of run `a`, of which the page has the entries behind 100; `answer` is what the server says to a path and query. */
function loading(answer: (path: string, query: URLSearchParams) => object) {
  const asked: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const url = new URL(String(input), "http://probe");
    asked.push(`${url.pathname}${url.search}`);
    return Response.json(answer(url.pathname, url.searchParams));
  });
  const fake = new FakeFeed();
  fake.feed.start();
  fake.source.hello("a", { id: "a-100" });
  for (const seq of [101, 102, 103]) fake.source.entry("a", seq);
  fake.frame();
  const loader = new Loader(fake.feed);
  const idle = () => vi.waitFor(() => expect(loader.state().busy).toBeNull());
  const view = () => (fake.frame(), fake.feed.snapshot().trace);
  return { asked, fake, loader, idle, view };
}

function part() {
  const story = new Story();
  story.opened("s1", "one");
  story.call("s1", 1, 0, 1);
  const events = withViews(story.entries);
  return { events, exchanges: rowsOf(events) };
}

test("a search fills the list, counts the whole log, and has the feed mark what comes behind it", async () => {
  const { asked, fake, loader, idle, view } = loading((_path, query) => ({ run: "a", matched: 2, total: 9, last: 102, next: query.get("before") === null ? 40 : null, left_out: 0, ...part() }));
  loader.find("a", { line: "tool:progress", by: "exchange", whole: false });
  expect(loader.state().busy).toBe("search");
  await idle();
  expect(asked).toEqual(["/api/search?filter=tool%3Aprogress&by=exchange&view=1", "/api/search?filter=tool%3Aprogress&by=exchange&before=40&view=1"]);
  expect(loader.state().found).toMatchObject({ matched: 2, total: 9, next: null });
  expect(spansOf(view(), null).map(({ row }) => row.exchange)).toEqual([1]);
  const query = new URLSearchParams(fake.source.url.split("?")[1]);
  expect([query.get("passes"), query.get("since")]).toEqual(["tool:progress", "a-102"]);
  loader.find("a", { line: "", by: "exchange", whole: false });
  expect([loader.state().found, view().passing.line]).toEqual([null, ""]);
});

test("a search that another one replaces changes nothing any more", async () => {
  const { loader, idle, view } = loading((_path, query) => ({ run: "a", matched: 1, total: 9, last: 103, next: null, left_out: 0, ...(query.get("filter") === "old" ? part() : { events: [], exchanges: [] }) }));
  loader.find("a", { line: "old", by: "entry", whole: false });
  loader.find("a", { line: "new", by: "entry", whole: false });
  await idle();
  expect([view().passing.line, entriesOf(view(), null)]).toEqual(["new", []]);
});

test("older entries come before the others, until the beginning of the log, or until what was pushed out of it", async () => {
  const { asked, loader, idle, view } = loading((_path, query) => (query.get("before") === "101" ? { run: "a", gap: null, next: 4, last: 103, ...part() } : { run: "a", gap: { first: 1, last: 3 }, next: null, last: 103, events: [], exchanges: [] }));
  loader.older("a", 101);
  await idle();
  expect([asked.at(-1), view().runs[0]?.first, loader.state().end]).toEqual(["/api/events?before=101&limit=500&view=1", 4, null]);
  loader.older("a", 4);
  await idle();
  expect(loader.state().end).toBe("evicted");
});

test("a gap is filled page by page, and what cannot be loaded is said", async () => {
  const { fake, loader, idle, view } = loading((_path, query) => ({ run: query.get("since") === "103" ? "a" : "b", gap: null, next: 105, last: 110, events: [], exchanges: [] }));
  fake.source.say("gap", { reason: "skipped", first: 104, last: 110 }, "a-110");
  const [gap] = view().runs[0]?.gaps ?? [];
  if (gap === undefined) throw new Error("there is a gap");
  loader.fill(gap);
  await idle();
  expect(view().runs[0]?.gaps).toMatchObject([{ first: 106, last: 110 }]);
  expect(loader.state().error).toMatch(/the server has restarted/);
});
