import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Locator, page, userEvent } from "vitest/browser";
import { render } from "vitest-browser-react";
import { Router } from "wouter";
import type { Entry } from "~/protocol/schema";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { FakeFeed, NO_CONTEXT } from "~/testing/fake-source";
import { Story } from "~/testing/story";
import { FeedContext } from "~/trace/use-feed";
import LiveView from "./live-view";

/** What /api answers; by path and query. */
let answers = new Map<string, { status?: number; body: unknown }>();
let asked: string[] = [];

beforeEach(() => {
  answers = new Map();
  asked = [];
  vi.stubGlobal("fetch", async (input: string) => {
    asked.push(input);
    const answer = answers.get(input) ?? { status: 404, body: { title: "Not Found", detail: `nothing at ${input}` } };
    return Response.json(answer.body, { status: answer.status ?? 200 });
  });
});

afterEach(() => vi.unstubAllGlobals());

async function opened(query = "", story = new Story()) {
  history.replaceState(null, "", `/dashboard/live${query.startsWith("?") ? query : `?${query}`}${query.includes("view=") ? "" : "&view=all&order=newest"}`);
  const fake = new FakeFeed();
  const stop = fake.feed.start();
  fake.source.hello("a");
  say(fake, story.entries);
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const view = await render(
    <QueryClientProvider client={client}>
      <FeedContext value={fake.feed}>
        <Router base="/dashboard">
          <main style={{ height: "800px" }}>
            <LiveView />
          </main>
        </Router>
      </FeedContext>
    </QueryClientProvider>,
  );
  return { fake, view, stop };
}

function say(fake: FakeFeed, entries: readonly Entry[]): void {
  for (const entry of entries) fake.source.entry(fake.feed.snapshot().hello?.run ?? "a", entry.seq, entry);
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

const grid = () => page.getByRole("grid", { name: "Events, newest first" });
const rows = () => [...document.querySelectorAll('[role="row"][tabindex]')].map((row) => row.textContent);
const row = (seq: number) => [...document.querySelectorAll('[role="row"][tabindex]')].find((each) => each.children[1]?.textContent === String(seq));
const bottomOf = (seq: number) => row(seq)?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY;
const textOf = (what: Locator) => () => what.query()?.textContent ?? "";
const frame = () => new Promise((resolve) => void requestAnimationFrame(() => setTimeout(resolve)));
const line = () => page.getByRole("combobox", { name: "Filter" });
const drawer = () => page.getByRole("complementary");
const param = (name: string) => new URLSearchParams(location.search).get(name);

test("without a client it says how to connect one", async () => {
  const story = new Story();
  story.add({ kind: "server.state", state: "ready" });
  await opened("", story);
  await expect.element(page.getByRole("heading", { name: "No client has connected since the server started" })).toBeVisible();
});

test("entries stand newest first, with ids of their types and who is meant", async () => {
  await opened("?show=messages&method=tools/call", twoClients());
  await expect.element(grid()).toBeVisible();
  const shown = rows();
  expect(shown.length).toBe(4);
  expect(shown[0]).toMatch(/m1 two.*→ in.*2026 2026-07-28tools\/call request"1" progress .* token "0"no answer yet/);
  expect(shown[1]).toMatch(/s1 one.*← delivered.*2025 2025-11-25.*tools\/call response1 done by s1\d+ ms after #4/);
  expect(shown[2]).toMatch(/s1 one.*→ in.*tools\/call request1 progress .* token 0#\d+ after \d+ ms/);
});

test("a message that no socket took yet is marked, until one does", async () => {
  const story = twoClients();
  const of = { exchange: 99, session: "s1", stream: "p9" };
  const seq = story.emit({ ...of, position: 1 }, { method: "notifications/message", params: { level: "info", data: "x" } });
  const { fake } = await opened("", story);
  await expect.poll(() => row(seq)?.textContent).toContain("← emitted");
  story.deliver(of, 1);
  say(fake, story.entries);
  await expect.poll(() => row(seq)?.textContent).toContain("← delivered");
});

test("a client of this run is left to the server to choose; all its neighbours are again when it is not", async () => {
  const { fake } = await opened("?session=m1", twoClients());
  const wished = () => new URL(fake.source.url, location.href).searchParams.get("session");
  await vi.waitFor(() => expect(wished()).toBe("m1"));
  await userEvent.fill(line(), "client:m1,s1");
  await vi.waitFor(() => expect(wished()).toBeNull());
  // the wire has the heads of HTTP requests, which name no client yet
  await userEvent.fill(line(), "client:s1");
  await vi.waitFor(() => expect(wished()).toBe("s1"));
  await page.getByRole("radio", { name: "Wire" }).click({ force: true });
  await vi.waitFor(() => expect(wished()).toBeNull());
});

test("ids of two clients that differ in the last of many digits look different", async () => {
  const story = new Story();
  story.opened("s1", "one");
  story.opened("s2", "two");
  const { fake } = await opened("", story);
  const large = [["s1", "9007199254740993"], ["s2", "9007199254740992"]] as const;
  for (const [index, [session, id]] of large.entries()) {
    const seq = story.entries.length + 1 + index;
    const data = `{"seq":${seq},"at":1,"mono":1,"kind":"message.received","cause":null,"connection":null,"label":null,"call":null,"task":null,"stream":null,"exchange":${seq},"session":"${session}","batch":null,"rpc":"request","method":"ping","id":${id},"message":{"id":${id}}}`;
    fake.source.dispatchEvent(new MessageEvent("message", { data, lastEventId: `a-${seq}` }));
  }
  fake.frame();
  for (const [, id] of large) await expect.element(page.getByText(id, { exact: true })).toBeVisible();
  await userEvent.fill(line(), "9007199254740993");
  await expect.element(page.getByText(/^1 entry listed/)).toBeVisible();
  await page.getByText("9007199254740993", { exact: true }).click();
  await expect.poll(textOf(drawer())).toMatch(/id9007199254740993 integer/);
});

test("text filters while the feed goes on", async () => {
  const story = twoClients();
  const { fake } = await opened("", story);
  await userEvent.fill(line(), '"step 2"');
  // a feed that changes each frame must not put the search off
  const timer = setInterval(() => {
    story.add({ kind: "server.state", state: "ready" });
    say(fake, story.entries.slice(-1));
  }, 30);
  await expect.element(page.getByText(/^2 entries listed/)).toBeVisible();
  clearInterval(timer);
  expect(param("filter")).toBe('"step 2"');
});

test("a pause holds the picture and counts; resuming shows the newest", async () => {
  const story = twoClients();
  const { fake } = await opened("", story);
  await page.getByRole("button", { name: "Pause" }).click();
  const before = rows();
  story.request("s1", 50, "ping");
  say(fake, story.entries);
  await expect.element(page.getByRole("button", { name: "Resume (2 new)" })).toBeVisible();
  expect(rows()).toEqual(before);
  await page.getByRole("button", { name: /Resume/ }).click();
  await expect.poll(textOf(grid())).toMatch("ping");
});

test("scrolled away, the list keeps its place, counts what comes, and leads back", async () => {
  const story = new Story();
  story.opened("s1", "one");
  for (let id = 0; id < 100; id += 1) story.request("s1", id, "ping");
  const { fake } = await opened("", story);
  const box = grid().element();
  box.scrollTop = 1000;
  await frame();
  // beside the pill, which lies over the middle of the list
  const top = () => document.elementFromPoint(60, box.getBoundingClientRect().top + 60)?.closest("[role=row]")?.textContent;
  await vi.waitFor(() => expect(top()).toBeDefined());
  const before = top();
  story.request("s1", 500, "ping");
  say(fake, story.entries);
  await expect.element(page.getByRole("button", { name: "↑ 2 new" })).toBeVisible();
  await expect.poll(top).toBe(before);
  await page.getByRole("button", { name: "↑ 2 new" }).click();
  await vi.waitFor(() => expect(box.scrollTop).toBe(0));
  await expect.element(page.getByRole("button", { name: "↑ 2 new" })).not.toBeInTheDocument();
});

test("a row opens by keyboard, the neighbours follow, Escape closes", async () => {
  await opened("", twoClients());
  await grid().getByRole("row").nth(1).click();
  await expect.element(drawer()).toBeVisible();
  const first = param("at");
  await userEvent.keyboard("{Escape}");
  await expect.element(drawer()).not.toBeInTheDocument();
  await userEvent.keyboard("{ArrowDown}{Enter}");
  await expect.element(drawer()).toBeVisible();
  expect(param("at")).not.toBe(first);
  await page.getByRole("button", { name: "The row above" }).click();
  expect(param("at")).toBe(first);
  await expect.element(page.getByRole("button", { name: "The row above" })).toBeDisabled();
  await page.getByRole("button", { name: "The row below" }).click();
  expect(param("at")).not.toBe(first);
});

test("the panel leads to the other half, the call, the exchange", async () => {
  const story = twoClients();
  await opened("?at=a-4", story);
  await expect.element(drawer().getByRole("heading", { name: "#4 tools/call" })).toBeVisible();
  await expect.poll(textOf(drawer())).toMatch(/id1 integer/);
  await expect.element(drawer().getByRole("link", { name: /Answer #/ })).toBeVisible();
  await drawer().getByRole("link", { name: /Answer #/ }).click();
  await expect.element(drawer().getByRole("link", { name: "#4", exact: true }).first()).toBeVisible();
  await expect.element(drawer().getByRole("link", { name: "Tool call c1" })).toHaveAttribute("href", "/dashboard/calls/a.c1");
  await expect.element(drawer().getByRole("link", { name: "Client s1" })).toHaveAttribute("href", "/dashboard/clients/s1");
  await drawer().getByRole("link", { name: "Only exchange 1" }).click();
  expect([param("filter"), param("at") !== null]).toEqual(["exchange:1", true]);
  await expect.element(line()).toHaveValue("exchange:1");
});

test("the panel leads to the cause of an entry, and to what it caused", async () => {
  await opened("?at=a-5", twoClients());
  await expect.element(drawer().getByRole("heading", { name: "#5 tools/call" })).toBeVisible();
  await expect.poll(textOf(drawer())).toMatch(/Because of #4 tools\/call request, 1 ms before/);
  await expect.poll(textOf(drawer())).toMatch(/It caused: 4 entries on this page#8notifications\/progress/);
  await drawer().getByRole("link", { name: "#4", exact: true }).first().click();
  await expect.element(drawer().getByRole("heading", { name: "#4 tools/call" })).toBeVisible();
  await expect.poll(textOf(drawer())).toMatch(/Because of #3 http\.request/);
});

test("the label that a client was given stands beside it, and is a filter", async () => {
  const story = twoClients();
  for (const entry of story.entries) if (entry.session === "m1") entry.label = "lab";
  await opened("?show=calls&at=a-5", story);
  await expect.poll(() => rows()[0]).toMatch(/m1 lab two/);
  expect(drawer().getByRole("link", { name: /Only client/ }).query()).toBeNull();
  await grid().getByRole("row").nth(1).click();
  await drawer().getByRole("link", { name: "Only client lab" }).click();
  expect(param("filter")).toBe("client:lab");
  await expect.poll(() => rows().slice(0, -1).every((each) => each?.includes("m1 lab") || each?.includes("http.request"))).toBe(true);
});

test("the whole entry comes on demand", async () => {
  await opened("?at=4", twoClients());
  await expect.element(page.getByText("Whole entry")).not.toBeInTheDocument();
  await page.getByRole("button", { name: "Show the whole entry" }).click();
  await expect.element(page.getByText("Whole entry")).toBeVisible();
});

test("the selected row is brought into view", async () => {
  const story = new Story();
  story.opened("s1", "one");
  for (let id = 0; id < 200; id += 1) story.request("s1", id, "ping");
  await opened("?at=a-3", story);
  await expect.poll(() => row(3)?.getAttribute("aria-selected")).toBe("true");
  await expect.poll(() => bottomOf(3) < grid().element().getBoundingClientRect().bottom).toBe(true);
});

test("an entry that is not here is fetched", async () => {
  const story = twoClients();
  answers.set("/api/events/4", { body: story.entries[3] });
  await opened("?at=a-4", new Story());
  await expect.element(drawer().getByRole("heading", { name: /#4/ })).toBeVisible();
  await expect.poll(textOf(drawer())).toMatch("tools/call");
});

test.each([
  ["a-4", "The server says: entry 4 was evicted."],
  ["old-4", "It belongs to run old of the server"],
  ["nonsense", "is no place in the log"],
])("of %s, which cannot be shown, it says why", async (at, why) => {
  answers.set("/api/events/4", { status: 404, body: { detail: "entry 4 was evicted" } });
  await opened(`?at=${at}`, new Story());
  await expect.poll(textOf(drawer().getByRole("status"))).toMatch(why);
  expect(asked.includes("/api/events/4")).toBe(at === "a-4");
});

test("a skipped gap can be loaded, an evicted one cannot", async () => {
  const story = twoClients();
  const { fake } = await opened("", story);
  const last = story.entries.length;
  fake.source.say("gap", { reason: "evicted", first: last + 1, last: last + 2 }, `a-${last + 2}`);
  fake.source.say("gap", { reason: "skipped", first: last + 3, last: last + 4 }, `a-${last + 4}`);
  fake.frame();
  await expect.element(page.getByText(/2 entries, #\d+ to #\d+: pushed out of the log/)).toBeVisible();
  const missing = [3, 4].map((more) => Object.assign({ seq: last + more, at: 1, mono: 1, kind: "limit.reached", limit: `limit_${more}`, value: 1 }, NO_CONTEXT));
  answers.set(`/api/events?since=${last + 2}&limit=500`, { body: { run: "a", gap: null, events: missing, next: last + 4, last: last + 4 } });
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await expect.element(page.getByText("limit_3")).toBeVisible();
  await expect.element(page.getByText("limit_4")).toBeVisible();
  await expect.element(page.getByText("gap: skipped")).not.toBeInTheDocument();
  await expect.element(page.getByText("gap: evicted")).toBeVisible();
});

test("a restart is said in its place", async () => {
  const { fake } = await opened("", twoClients());
  fake.source.fail();
  fake.source.hello("b");
  fake.source.say("gap", { reason: "restarted", first: null, last: null }, "b-0");
  fake.source.entry("b", 1, { kind: "server.state", state: "ready" });
  fake.frame();
  await expect.poll(textOf(grid())).toMatch("the server was started again");
  expect(rows().slice(0, 2)).toEqual([expect.stringContaining("server.state"), expect.stringContaining("gap: restarted")]);
});

test("older history is loaded to its beginning", async () => {
  const story = twoClients();
  const newer = new Story();
  newer.entries.push(...story.entries.slice(3));
  await opened("?show=sessions,calls&deliveries=rows", newer);
  answers.set("/api/events?before=4&limit=500", { body: { run: "a", gap: null, events: story.entries.slice(0, 3).toReversed(), next: null, last: 99 } });
  await page.getByRole("button", { name: "Load older" }).click();
  await expect.element(page.getByText("This is the beginning of the log.")).toBeVisible();
  await expect.poll(textOf(grid())).toMatch("client.seen");
});

test("what cannot be loaded is said", async () => {
  const newer = new Story();
  newer.entries.push(...twoClients().entries.slice(3));
  await opened("", newer);
  answers.set("/api/events?before=4&limit=500", { body: { run: "b", gap: null, events: [], next: null, last: 1 } });
  await page.getByRole("button", { name: "Load older" }).click();
  await expect.poll(textOf(page.getByRole("alert"))).toMatch("the server has restarted");
});

test("it is accessible in light and dark, with and without the panel", { timeout: 60_000 }, async () => {
  const story = twoClients();
  story.add({ kind: "client.misuse", session: "s1", what: "w", clause: "c", detail: "d", exchange: null });
  story.add({ kind: "message.dropped", session: "s1", call: null, task: null, why: "gone", rpc: "notification", method: "x", id: null, message: {} });
  story.emit({ exchange: 9, session: "s1", stream: "p9", position: 1 }, { method: "x" });
  const { fake } = await opened("?show=messages,problems", story);
  fake.source.say("gap", { reason: "skipped", first: 90, last: 99 }, "a-99");
  fake.frame();
  await expect.element(page.getByText("gap: skipped")).toBeVisible();
  await inBothThemes(() => expectAccessible());
  await grid().getByRole("row").nth(2).click();
  await expect.element(drawer()).toBeVisible();
  await inBothThemes(() => expectAccessible());
});
