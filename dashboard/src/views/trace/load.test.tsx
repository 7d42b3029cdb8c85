import { expect, test } from "vitest";
import { page } from "vitest/browser";
import { rendersSinceThen } from "~/testing/renders";
import { rowsOf, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { openTrace } from "~/testing/view";

const MOST = 10_000;
// In milliseconds: what comes by itself is shown within three frames, what draws all rows in view within thirty (half a second; a build for use
// takes a third of that). A busy machine is slower, but not each time, and never as slow as a list that makes all of its rows.
const BUDGET = 50;
const WHOLE = 500;
const SLOWEST = 5_000;

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

async function several(name: string, acts: readonly (() => void)[], report: Map<string, string>, budget = BUDGET): Promise<void> {
  const times: number[] = [];
  for (const act of acts) times.push(await painted(act));
  const sorted = times.toSorted((a, b) => a - b);
  expect([name, sorted.at(-1)]).toEqual([name, expect.toSatisfy((most: number) => most < SLOWEST)]);
  expect([name, sorted[0]]).toEqual([name, expect.toSatisfy((least: number) => least < budget)]);
  report.set(name, `${(sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1)} ms median, ${(sorted.at(-1) ?? 0).toFixed(1)} ms most, of ${times.length}`);
}

test("10,000 entries stay quick, and what comes draws no row again that it does not change", { timeout: 180_000 }, async () => {
  const entries = withViews(busy().entries);
  const exchanges = rowsOf(entries);
  // the server searches; here it finds each third request
  const found = { run: "a", matched: 99, total: exchanges.length, last: MOST, next: null, events: entries.filter(({ view }) => view.exchange % 3 === 0), exchanges };
  const { fake } = await openTrace("", new Story(), (path) => (path === "/api/search" ? found : undefined));
  const report = new Map<string, string>();
  fake.source.say("rows", { table: "exchanges", rows: exchanges });
  for (const entry of entries) fake.source.entry("a", entry.seq, entry);
  await several("first picture of 10,000 entries", [() => fake.frame()], report, SLOWEST);
  await expect.element(page.getByRole("treegrid")).toBeVisible();
  const box = element("[role=treegrid]");
  await several("nothing at all, which is what a frame takes here", Array.from({ length: 10 }, () => () => undefined), report);
  await several("scroll by a page", Array.from({ length: 10 }, () => () => (box.scrollTop += 600)), report);
  await several("scroll anywhere", [0.9, 0.1, 0.5, 0.99, 0.3, 0.7, 0].map((share) => () => (box.scrollTop = share * box.scrollHeight)), report, WHOLE);
  await several("sort", ["Request", "Request", "Took", "Time"].map((name) => sortBy(name)), report, WHOLE);
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
  rendersSinceThen();
  await several("30 new requests in a frame, scrolled away", Array.from({ length: 8 }, () => more), report);
  const away = rendersSinceThen();
  // the list itself in each of the 8 frames; of the rows in view those alone that come into it or change
  expect(away.get("List")).toBeGreaterThanOrEqual(8);
  expect(away.get("List")).toBeLessThan(24);
  const inView = document.querySelectorAll("[role=treegrid] [role=row]").length;
  for (const cell of ["ClientCell", "Request", "Status", "End"]) expect([cell, away.get(cell) ?? 0]).toEqual([cell, expect.toSatisfy((count: number) => count < inView)]);
  await several("open a request", [() => element("[role=row][aria-expanded]").click()], report, SLOWEST);
  expect(page.getByRole("complementary").query()).not.toBeNull();
  // the field waits 150 ms for typing to rest; Enter does not
  const line = element<HTMLInputElement>("[data-search]");
  const type = (text: string) => () => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set?.call(line, text);
    line.dispatchEvent(new Event("input", { bubbles: true }));
    line.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  };
  await several("filter", ["client:s1", "tool:progress", "outcome:cancelled", ""].map((words) => type(words)), report, WHOLE);
  // oxlint-disable-next-line no-console
  console.info([...report].map(([name, times]) => `${name}: ${times}`).join("\n"));
  expect(element("[role=treegrid]").querySelectorAll("[role=row]").length).toBeLessThan(120);
});
