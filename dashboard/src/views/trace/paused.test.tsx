import { expect, test } from "vitest";
import { page, userEvent } from "vitest/browser";
import { rowsOf, sessionRow, withViews } from "~/testing/rows";
import { callAndPing, Story } from "~/testing/story";
import { openTrace, rowTexts } from "~/testing/view";

const LISTS = ["requests", "all"];

const listed = () => rowTexts().filter((text) => text.includes("tools/list")).length;
const shows = (method: string) => document.querySelector(".test-view")?.textContent.includes(method);

/** The entries of a request without an answer, and its exchange, as pages of the API give them. */
function part(story: Story, method: string) {
  const from = story.entries.length;
  story.request("s1", from, method);
  const events = withViews(story.entries.slice(from));
  return { run: "a", gap: null, events, exchanges: rowsOf(events), next: null, last: story.entries.length };
}

test("a pause holds the picture and counts; resuming shows the newest", async () => {
  const story = callAndPing();
  const { play } = await openTrace("", story);
  await page.getByRole("button", { name: "Pause" }).click();
  const before = rowTexts();
  story.request("s1", 50, "tools/list");
  play();
  await expect.element(page.getByRole("button", { name: "Resume (2 new)" })).toBeVisible();
  expect(rowTexts()).toEqual(before);
  await page.getByRole("button", { name: /Resume/ }).click();
  await expect.poll(() => rowTexts().at(-1)).toMatch("tools/list");
});

test.each(LISTS)("a list that is paused shows what another filter finds, and stands still again: %s", async (view) => {
  const story = callAndPing();
  const list = { exchange: 0 };
  const { fake, play } = await openTrace(`?view=${view}`, story, (path) => {
    if (path !== "/api/search") return undefined;
    const events = withViews(story.entries.filter(({ exchange }) => exchange === list.exchange));
    return { run: "a", matched: events.length, total: 9, last: story.entries.length, next: null, left_out: 0, events, exchanges: rowsOf(events) };
  });
  await page.getByRole("button", { name: "Pause" }).click();
  list.exchange = story.request("s1", 50, "tools/list").exchange;
  play();
  await expect.element(page.getByRole("button", { name: "Resume (2 new)" })).toBeVisible();
  expect(listed()).toBe(0);
  await userEvent.fill(page.getByRole("combobox", { name: "Filter" }), "method:tools/list");
  await expect.poll(() => (fake.frame(), listed())).toBe(1);
  expect(rowTexts().some((text) => text.includes("tools/call"))).toBe(false);
  await expect.element(page.getByRole("button", { name: "Resume (0 new)" })).toBeVisible();
  fake.source.hello("a", { resumed: true });
  story.request("s1", 51, "tools/list");
  play();
  await expect.element(page.getByRole("button", { name: "Resume (2 new)" })).toBeVisible();
  expect(listed()).toBe(1);
});

test.each(LISTS)("a list that is paused has the older and the skipped entries that are loaded by hand, and none that came since: %s", async (view) => {
  const story = new Story();
  const [older, skipped] = [part(story, "prompts/list"), part(story, "resources/list")];
  const played = new Story();
  let refused = true;
  const { fake, play } = await openTrace(`?view=${view}`, played, (path, query) => (path !== "/api/events" || refused ? undefined : query.get("before") === "3" ? older : { ...skipped, next: 4 }));
  fake.feed.trace.add("a", { events: [], exchanges: [] }, 3);
  fake.source.say("gap", { reason: "skipped", first: 3, last: 4 }, "a-4");
  story.request("s1", 50, "ping");
  played.entries.push(...story.entries.slice(4));
  play();
  // a list that is not full is filled unasked, unless that failed
  await expect.element(page.getByRole("alert")).toMatchTextContent("there is no such thing");
  await page.getByRole("button", { name: "Pause" }).click();
  story.request("s1", 51, "tools/list");
  played.entries.push(...story.entries.slice(6));
  play();
  refused = false;
  await page.getByRole("button", { name: "Load older" }).click();
  await expect.poll(() => (fake.frame(), shows("prompts/list"))).toBe(true);
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await expect.poll(() => (fake.frame(), shows("resources/list"))).toBe(true);
  expect([shows("ping"), shows("tools/list"), shows("gap: skipped")]).toEqual([true, false, false]);
  await page.getByRole("button", { name: "Resume (2 new)" }).click();
  await expect.poll(() => shows("tools/list")).toBe(true);
});

test.each(["requests", "ladder"])("a view that is paused has what an older part of the log is searched for, and nothing that came since: %s", async (view) => {
  const story = new Story();
  const [older, newer] = [part(story, "prompts/list"), part(story, "ping")];
  const counts = { matched: 3, total: 9, left_out: 0 };
  let paused = false;
  const { fake, show, play } = await openTrace(`?view=${view}&filter=client:s1`, new Story(), (path, query) => {
    if (path !== "/api/search") return undefined;
    const before = query.get("before");
    return { ...(paused ? older : before === null ? newer : { ...newer, events: [], exchanges: [] }), ...counts, next: Number(before ?? 90) - 1 };
  });
  show({ sessions: [sessionRow({ id: "s1" })] });
  await expect.poll(() => (fake.frame(), shows("ping"))).toBe(true);
  await page.getByRole("button", { name: "Pause" }).click();
  const { exchange } = story.request("s1", 51, "tools/list");
  story.rows[exchange] = { passes: true };
  fake.source.hello("a", { resumed: true });
  story.entries.splice(0, 4);
  play(story);
  paused = true;
  await page.getByRole("button", { name: "Search older" }).click();
  await expect.poll(() => (fake.frame(), shows("prompts/list"))).toBe(true);
  expect([shows("ping"), shows("tools/list")]).toEqual([true, false]);
  await page.getByRole("button", { name: "Resume (2 new)" }).click();
  await expect.poll(() => shows("tools/list")).toBe(true);
});
