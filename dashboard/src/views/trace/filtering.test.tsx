import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Locator, page, userEvent } from "vitest/browser";
import type { FakeFeed } from "~/testing/fake-source";
import { countsRow, sessionRow } from "~/testing/rows";
import { Story } from "~/testing/story";
import { answerApi, openView } from "~/testing/view";
import LiveView from "./live-view";

/** What the server answers to a path with its query. */
let answers = new Map<string, object>();

beforeEach(() => {
  answers = new Map();
});

afterEach(() => vi.restoreAllMocks());

function Window({ children }: { children: ReactNode }) {
  return <div style={{ display: "grid", gridTemplateRows: "minmax(0, 1fr)", height: "800px" }}>{children}</div>;
}

async function opened(query: string, story: Story) {
  answerApi((path, params) => answers.get(`${path}?${params}`));
  const view = await openView(LiveView, "/live", `/live${query}${query.includes("?") ? "&" : "?"}${query.includes("view=") ? "" : "view=all"}`, Window);
  view.fake.source.hello("a");
  say(view.fake, story);
  return view;
}

function say(fake: FakeFeed, { entries }: Story): void {
  for (const entry of entries) fake.source.entry("a", entry.seq, entry);
  fake.frame();
}

function twoClients(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.opened("m1", "two", "2026-07-28");
  story.call("s1", 1, 0, 3);
  story.call("m1", "1", "0", 3, "cancelled");
  return story;
}

const rows = () => [...document.querySelectorAll('[role="row"][tabindex]')].map((row) => row.textContent);
const textOf = (what: Locator) => () => what.query()?.textContent ?? "";
const line = () => page.getByRole("combobox", { name: "Filter" });
const param = (name: string) => new URLSearchParams(location.search).get(name);

test("chips write into the filter line, which is in the address and can be cleared", async () => {
  await opened("", twoClients());
  await page.getByRole("button", { name: /^calls/ }).click();
  await expect.element(page.getByText(/^4 entries listed/)).toBeVisible();
  expect(param("filter")).toBe("kind:call,dispatch");
  await expect.element(line()).toHaveValue("kind:call,dispatch");
  await userEvent.fill(line(), "kind:call,dispatch client:m1");
  await expect.element(page.getByText(/^2 entries listed/)).toBeVisible();
  await expect.element(page.getByRole("button", { name: /^calls/ })).toHaveAttribute("aria-pressed", "true");
  await userEvent.keyboard("{Escape}{Escape}");
  await expect.poll(() => param("filter")).toBeNull();
});

test("an address brings its filters, those of older links too", async () => {
  await opened("?session=m1&direction=in&method=tools/call&text=progress", twoClients());
  await expect.element(page.getByText(/^1 entry listed/)).toBeVisible();
  await expect.element(line()).toHaveValue("client:m1 direction:in method:tools/call progress");
});

test("what of a line is not understood is said under it, and filters nothing", async () => {
  await opened("", twoClients());
  await userEvent.fill(line(), "clint:m1");
  await expect.poll(textOf(page.getByRole("alert"))).toMatch(/^clint: is no word of the filter; known are client/);
  await expect.element(line()).toHaveAttribute("aria-invalid", "true");
  expect(param("filter")).toBeNull();
});

test("words are completed by keyboard, from what the page knows", async () => {
  const { fake } = await opened("", twoClients());
  fake.source.say("rows", { table: "sessions", rows: [sessionRow({ id: "m1", client_name: "lab agent" })] });
  fake.frame();
  await line().click();
  await userEvent.keyboard("cl{ArrowDown}");
  await expect.element(page.getByRole("option", { name: /^client:/ })).toHaveAttribute("aria-selected", "true");
  await userEvent.keyboard("{Enter}");
  await expect.element(line()).toHaveValue("client:");
  await userEvent.keyboard("lab{ArrowDown}{Tab}");
  await expect.element(line()).toHaveValue("client:m1 ");
  expect(param("filter")).toBe("client:m1 ");
  await expect.element(line()).toHaveFocus();
  expect(line().element().getAttribute("aria-expanded")).toBe("false");
});

test("problems are counted over the whole log, and a filter finds there what this page has not loaded", async () => {
  const story = twoClients();
  const older = new Story();
  older.request("s9", 1, "ping");
  older.add({ kind: "client.misuse", session: "s9", exchange: 1, what: "id used before", clause: "c", detail: "d" });
  // one answer, with the counts too: to find each page the server looks at all of its log
  const { entries: events } = older;
  answers.set("/api/search?filter=problem%3Amistake&by=exchange&limit=5000", { run: "a", matched: 600, total: 12_913, last: 40_000, next: null, left_out: 0, events });
  for (const entry of story.entries) Object.assign(entry, { seq: entry.seq + 500, exchange: entry.exchange === null ? null : entry.exchange + 500 });
  const { fake } = await opened("?view=wire", story);
  fake.source.say("rows", { table: "counts", rows: [countsRow({ entries: 40_000, problems: 1_800, mistakes: 600, lost: 7 })] });
  fake.frame();
  await expect.element(page.getByText(/exchanges listed; the log has 40,000 entries$/)).toBeVisible();
  await expect.element(page.getByRole("button", { name: "lost deliveries 7" })).toBeVisible();
  await page.getByRole("button", { name: "client mistakes 600" }).click();
  await expect.element(page.getByText("1 exchange listed; 600 of the 12,913 exchanges in the log pass")).toBeVisible();
  await expect.element(page.getByRole("row").filter({ hasText: "id used before" })).toBeVisible();
});

test("nothing that passes in the whole log is said, with the way back", async () => {
  for (const limit of ["", "&limit=0"]) answers.set(`/api/search?filter=nowhere&by=entry${limit}`, { run: "a", matched: 0, total: 12_913, last: 9, next: null, left_out: 0, events: [] });
  await opened("?text=nowhere", twoClients());
  await expect.element(page.getByRole("heading", { name: "None of the 12,913 entries in the log passes the filter" })).toBeVisible();
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await expect.element(page.getByRole("grid")).toBeVisible();
});

test("a log that cannot be searched is said", async () => {
  await opened("?text=nowhere", twoClients());
  await expect.element(page.getByText("The log could not be searched: there is no such thing")).toBeVisible();
});

test("a cleared view says when and how many entries it hides, and shows them again", async () => {
  const story = twoClients();
  const { fake } = await opened("", story);
  const before = rows().length;
  await page.getByRole("button", { name: "Clear view" }).click();
  await expect.element(page.getByText(/^Cleared at \d\d:\d\d:\d\d\.\d{3}: \d+ entries hidden\./)).toBeVisible();
  await expect.element(page.getByRole("heading", { name: "This list is empty" })).toBeVisible();
  story.request("s1", 50, "ping");
  say(fake, story);
  await expect.poll(() => rows().length).toBe(3);
  await page.getByRole("button", { name: "Show them" }).click();
  await expect.poll(() => rows().length).toBe(before + 2);
});
