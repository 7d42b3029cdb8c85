import { expect, test } from "vitest";
import { page } from "vitest/browser";
import { rendersSinceThen } from "~/testing/renders";
import { rowsOf, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { openTrace } from "~/testing/view";

const MOST = 10_000;
// Milliseconds. A change takes 17 to 130 ms on an idle machine and some seconds on one that runs the whole check, so time finds only a page that hangs.
// Rows are counted instead: a list that draws more than the rows in view is as slow as its log is long.
const SLOWEST = 10_000;
const MOST_ROWS = 120;
const CELLS = ["ClientCell", "Asked", "Status", "Outcome"];

/** Both eras, two clients with the ids 1 and "1" and the tokens 0 and "0", endings of all kinds. */
function busy(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.opened("s2", "two");
  story.opened("m1", "three", "2026-07-28");
  for (let id = 1; story.entries.length < MOST; id += 1) {
    story.call("s1", id, 0, 10);
    story.call("s2", String(id), "0", 5, "cancelled");
    story.call("m1", id, 0, 8, id % 5 === 0 ? "tool_error" : "completed");
    const { exchange, seq } = story.request("s2", `${id}-x`, "tools/call", { name: "nope", arguments: {} });
    story.emit({ exchange, session: "s2", stream: null, position: null }, { id: `${id}-x`, error: { code: -32602, message: "Unknown tool: nope" } }, seq);
    story.deliver({ exchange, session: "s2", stream: null }, 1);
  }
  story.entries.length = MOST;
  return story;
}

/** The time from doing something to the end of the frame that shows it. */
async function painted(act: () => void): Promise<number> {
  const from = performance.now();
  act();
  await new Promise((resolve) => {
    requestAnimationFrame(() => {
      // a message is handled after the frame is painted
      const { port1, port2 } = new MessageChannel();
      port1.addEventListener("message", () => resolve(undefined));
      port1.start();
      port2.postMessage(null);
    });
  });
  return performance.now() - from;
}

function element<Type extends HTMLElement>(selector: string): Type {
  const found = document.querySelector<Type>(selector);
  if (found === null) throw new Error(`there is no ${selector}`);
  return found;
}

const sortBy = (name: string) => () => [...document.querySelectorAll<HTMLElement>("[role=columnheader] button")].find(({ textContent }) => textContent.startsWith(name))?.click();
const fold = () => element("[role=row][aria-expanded] button").click();

/** Does each of these, checks how many rows are drawn for it and are there afterwards, and returns how often each component was called for all. */
async function several(name: string, acts: readonly (() => void)[], report: Map<string, string>): Promise<ReadonlyMap<string, number>> {
  const times: number[] = [];
  const drawn: number[] = [];
  const called = new Map<string, number>();
  rendersSinceThen();
  for (const act of acts) {
    times.push(await painted(act));
    const renders = rendersSinceThen();
    drawn.push(renders.get("Status") ?? 0);
    for (const [component, count] of renders) called.set(component, (called.get(component) ?? 0) + count);
  }
  const sorted = times.toSorted((a, b) => a - b);
  report.set(name, `${(sorted[Math.floor(times.length / 2)] ?? 0).toFixed(1)} ms median, ${(sorted.at(-1) ?? 0).toFixed(1)} ms most, of ${times.length}; rows drawn: ${drawn.join(", ")}`);
  expect([name, Math.max(...times)]).toEqual([name, expect.toSatisfy((taken: number) => taken < SLOWEST)]);
  expect([name, Math.max(...drawn)]).toEqual([name, expect.toSatisfy((count: number) => count < MOST_ROWS)]);
  expect(element("[role=treegrid]").querySelectorAll("[role=row]").length).toBeLessThan(MOST_ROWS);
  return called;
}

test("10,000 entries draw the rows in view, and what comes draws no row again that it does not change", { timeout: 180_000 }, async () => {
  const entries = withViews(busy().entries);
  const exchanges = rowsOf(entries);
  // the server searches; here it finds each third request
  const found = { run: "a", matched: 99, total: exchanges.length, last: MOST, next: null, events: entries.filter(({ view }) => view.exchange % 3 === 0), exchanges };
  const { fake } = await openTrace("", new Story(), (path) => (path === "/api/search" ? found : undefined));
  const report = new Map<string, string>();
  fake.source.say("rows", { table: "exchanges", rows: exchanges });
  for (const entry of entries) fake.source.entry("a", entry.seq, entry);
  const picture = await several("first picture of 10,000 entries", [() => fake.frame()], report);
  await expect.element(page.getByRole("treegrid")).toBeVisible();
  for (const cell of CELLS) expect(picture.get(cell)).toBeGreaterThan(0);
  const box = element("[role=treegrid]");
  await several("nothing at all, which is what a frame takes here", Array.from({ length: 10 }, () => () => undefined), report);
  await several("scroll by a page", Array.from({ length: 10 }, (_, at) => () => (box.scrollTop = (at + 1) * 600)), report);
  await several("scroll anywhere", [0.9, 0.1, 0.5, 0.99, 0.3, 0.7, 0].map((share) => () => (box.scrollTop = share * box.scrollHeight)), report);
  await several("sort", ["Request", "Request", "Took", "Time"].map((name) => sortBy(name)), report);
  await several("unfold and fold a request", [fold, fold, fold, fold], report);
  const exchange = MOST;
  const of = { kind: "message.received" as const, session: "s1", rpc: "request", method: "ping", id: 1, message: {}, batch: null };
  const story = new Story();
  const more = () => {
    const first = story.entries.length;
    for (let each = 0; each < 30; each += 1) story.add({ ...of, exchange: exchange + first + each });
    const added = withViews(story.entries.slice(first)).map((each) => Object.assign(each, { seq: MOST + each.seq, at: each.at + MOST / 1000, mono: each.mono + MOST / 1000 }));
    fake.source.say("rows", { table: "exchanges", rows: rowsOf(added) });
    for (const entry of added) fake.source.entry("a", entry.seq, entry);
    fake.frame();
  };
  await several("30 new requests in a frame, followed", Array.from({ length: 8 }, () => more), report);
  box.scrollTop = 5000;
  await painted(() => undefined);
  await painted(() => undefined);
  const away = await several("30 new requests in a frame, scrolled away", Array.from({ length: 8 }, () => more), report);
  // the list itself in each of the 8 frames; of the rows in view those alone that come into it or change
  expect(away.get("List")).toBeGreaterThanOrEqual(8);
  expect(away.get("List")).toBeLessThan(24);
  const inView = document.querySelectorAll("[role=treegrid] [role=row]").length;
  for (const cell of CELLS) expect([cell, away.get(cell) ?? 0]).toEqual([cell, expect.toSatisfy((count: number) => count < inView)]);
  await several("open a request", [() => element("[role=row][aria-expanded]").click()], report);
  expect(page.getByRole("complementary").query()).not.toBeNull();
  // the field waits 150 ms for typing to rest; Enter does not
  const line = element<HTMLInputElement>("[data-search]");
  const type = (text: string) => () => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set?.call(line, text);
    line.dispatchEvent(new Event("input", { bubbles: true }));
    line.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  };
  await several("filter", ["client:s1", "tool:progress", "outcome:cancelled", ""].map((words) => type(words)), report);
  // oxlint-disable-next-line no-console
  console.info([...report].map(([name, times]) => `${name}: ${times}`).join("\n"));
});
