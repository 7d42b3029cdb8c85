import { expect, test, vi } from "vitest";
import { type Locator, page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { countsRow, rowsOf, sessionRow, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { NO_CONTEXT } from "~/testing/fake-source";
import { openTrace } from "~/testing/view";

const opened = (query: string, story = new Story(), answer?: Parameters<typeof openTrace>[2]) => openTrace(`${query}${query === "" ? "?" : "&"}view=all&order=newest`, story, answer);

function twoClients(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.opened("m1", "two", "2026-07-28");
  story.call("s1", 1, 0, 3);
  story.call("m1", "1", "0", 3, "cancelled");
  return story;
}

const grid = () => page.getByRole("grid", { name: "Entries, newest first" });
const rows = () => [...document.querySelectorAll('[role="row"][tabindex]')].map((row) => row.textContent);
const row = (seq: number) => [...document.querySelectorAll('[role="row"][tabindex]')].find((each) => each.children[1]?.textContent === String(seq));
const bottomOf = (seq: number) => row(seq)?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY;
const textOf = (what: Locator) => () => what.query()?.textContent ?? "";
const line = () => page.getByRole("combobox", { name: "Filter" });
const drawer = () => page.getByRole("complementary");
const param = (name: string) => new URLSearchParams(location.search).get(name);

/** The answer of a search that finds some entries. */
const found = (entries: Story["entries"], more: object = {}) => {
  const events = withViews(entries);
  return { run: "a", matched: events.length, total: 12_913, last: 40_000, next: null, left_out: 0, events, exchanges: rowsOf(events), ...more };
};

const calls = () => rows().filter((text) => text?.includes("tools/call"));

test("entries stand newest first, with ids of their types, and each answer knows its request", async () => {
  await opened("", twoClients());
  await expect.element(grid()).toBeVisible();
  await expect.poll(() => calls().length).toBe(3);
  expect(calls()).toEqual([
    expect.stringMatching(/m1 +two.*→ in.*tools\/call request"1" ?progress .* token "0"no answer due/),
    expect.stringMatching(/s1 +one.*← received.*tools\/call response1 ?done by s1\d+ ms after #4/),
    expect.stringMatching(/s1 +one.*→ in.*tools\/call request1 ?progress .* token 0#\d+ after \d+ ms/),
  ]);
});

test("a message that no socket took yet is marked, until one does", async () => {
  const story = twoClients();
  const of = { exchange: 99, session: "s1", stream: "p9" };
  const seq = story.emit({ ...of, position: 1 }, { method: "notifications/message", params: { level: "info", data: "x" } });
  const { play } = await opened("", story);
  await expect.poll(() => row(seq)?.textContent).toContain("← sent");
  story.deliver(of, 1);
  play();
  await expect.poll(() => row(seq)?.textContent).toContain("← received");
});

test("ids of two clients that differ in the last of many digits look different", async () => {
  const { fake } = await opened("", twoClients());
  for (const [index, id] of ["9007199254740993", "9007199254740992"].entries()) {
    const data = `{"seq":${200 + index},"at":1,"mono":1,"kind":"message.received","cause":null,"connection":null,"label":null,"call":null,"task":null,"stream":null,"exchange":${index + 50},"session":"s${index}","batch":null,"rpc":"request","method":"ping","id":${id},"message":{"id":${id}},"view":{"exchange":${index + 50},"on_wire":true,"direction":"in","method":"ping","delivered":null,"delivers":[],"passes":null}}`;
    fake.source.dispatchEvent(new MessageEvent("message", { data, lastEventId: `a-${200 + index}` }));
  }
  fake.frame();
  for (const id of ["9007199254740993", "9007199254740992"]) await expect.element(page.getByText(id, { exact: true })).toBeVisible();
  await page.getByText("9007199254740993", { exact: true }).click();
  await expect.poll(textOf(drawer())).toMatch(/id9007199254740993 integer/);
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
  await opened("?at=a-4", twoClients());
  await expect.element(drawer().getByRole("heading", { name: "tools/call request #4" })).toBeVisible();
  await expect.poll(textOf(drawer())).toMatch(/id1 integer/);
  await drawer().getByRole("link", { name: /Answer #/ }).click();
  await expect.element(drawer().getByRole("link", { name: "#4", exact: true }).first()).toBeVisible();
  await expect.element(drawer().getByRole("link", { name: "Tool call c1" })).toHaveAttribute("href", "/dashboard/calls/a.c1");
  await drawer().getByRole("link", { name: "Only exchange 1" }).click();
  expect([param("filter"), param("at") !== null]).toEqual(["exchange:1", true]);
  await expect.element(line()).toHaveValue("exchange:1");
});

test("the panel leads to the cause of an entry, and to what it caused", async () => {
  await opened("?at=a-5", twoClients());
  await expect.element(drawer().getByRole("heading", { name: "call started #5" })).toBeVisible();
  await expect.poll(textOf(drawer())).toMatch(/Because of #4 tools\/call request, 1 ms before/);
  await expect.poll(textOf(drawer())).toMatch(/It caused: 4 entries on this page#8notifications\/progress/);
  await drawer().getByRole("link", { name: "#4", exact: true }).first().click();
  await expect.poll(textOf(drawer())).toMatch(/Because of #3 HTTP request/);
});

test("the label that a client was given stands beside it, and is a filter", async () => {
  const story = twoClients();
  for (const entry of story.entries) if (entry.session === "m1") entry.label = "lab";
  await opened("?at=a-4", story);
  await expect.poll(() => rows()[0]).toMatch(/m1 lab +two/);
  await grid().getByRole("row").nth(1).click();
  await drawer().getByRole("link", { name: "Only client lab" }).click();
  expect(param("filter")).toBe("client:lab");
});

test("the whole entry comes on demand, as the log has it", async () => {
  await opened("?at=4", twoClients());
  await expect.element(page.getByText("Whole entry")).not.toBeInTheDocument();
  await page.getByRole("button", { name: "Show the whole entry" }).click();
  await expect.element(page.getByText("Whole entry")).toBeVisible();
  expect(drawer().getByText('"view"').query()).toBeNull();
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
  const [, , , fourth] = withViews(twoClients().entries);
  await opened("?at=a-4", new Story(), (path) => (path === "/api/events/4" ? fourth : undefined));
  await expect.element(drawer().getByRole("heading", { name: "tools/call request #4" })).toBeVisible();
});

test.each([
  ["a-4", "The server says: there is no such thing."],
  ["old-4", "It belongs to run old of the server"],
  ["nonsense", "is not a place in the log"],
])("of %s, which cannot be shown, it says why", async (at, why) => {
  const { asked } = await opened(`?at=${at}`, new Story());
  await expect.poll(textOf(drawer().getByRole("status"))).toMatch(why);
  expect(asked.includes("/api/events/4?view=1")).toBe(at === "a-4");
});

test("a skipped gap can be loaded, an evicted one cannot", async () => {
  const story = twoClients();
  const last = story.entries.length;
  const missing = withViews([3, 4].map((more) => Object.assign({ seq: last + more, at: 1, mono: 1, kind: "limit.reached" as const, limit: `limit_${more}`, value: 1 }, NO_CONTEXT)));
  const { fake } = await opened("", story, (path, query) => (path === "/api/events" && query.get("since") === String(last + 2) ? { run: "a", gap: null, events: missing, exchanges: [], next: last + 4, last: last + 4 } : undefined));
  fake.source.say("gap", { reason: "evicted", first: last + 1, last: last + 2 }, `a-${last + 2}`);
  fake.source.say("gap", { reason: "skipped", first: last + 3, last: last + 4 }, `a-${last + 4}`);
  fake.frame();
  await expect.element(page.getByText(/2 entries, #\d+ to #\d+: pushed out of the log/)).toBeVisible();
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await vi.waitFor(() => {
    fake.frame();
    expect(textOf(grid())()).toMatch(/limit_4.*limit_3/);
  });
  await expect.element(page.getByText("gap: skipped")).not.toBeInTheDocument();
  await expect.element(page.getByText("gap: evicted")).toBeVisible();
});

test("older history is loaded until the list is full or has its beginning, and what cannot be loaded is said", async () => {
  const story = twoClients();
  const newer = new Story();
  newer.entries.push(...story.entries.slice(3));
  let run = "b";
  const { fake } = await opened("", newer, (path, query) => (path === "/api/events" && query.get("before") === "4" ? { run, gap: null, events: withViews(story.entries.slice(0, 3)).toReversed(), exchanges: [], next: null, last: 99 } : undefined));
  fake.source.hello("a");
  // the feed of this test began at the first entry: it is told that it has not
  fake.feed.trace.add("a", { events: [], exchanges: [] }, 4);
  fake.feed.changed();
  fake.frame();
  await expect.poll(() => (fake.frame(), textOf(page.getByRole("alert"))())).toMatch("the server has restarted");
  run = "a";
  await page.getByRole("button", { name: "Load older" }).click();
  await expect.poll(() => (fake.frame(), textOf(grid())())).toMatch(/client seen.*This is the beginning of the log\./);
});

test("groups and problems are chips that write into the filter line, with their numbers in the whole log", async () => {
  const { fake } = await opened("", twoClients(), (path, query) => (path === "/api/search" && query.get("filter") === "group:calls" ? found(twoClients().entries.filter(({ kind }) => kind.startsWith("call.")), { matched: 600 }) : undefined));
  fake.source.say("rows", { table: "counts", rows: [countsRow({ entries: 40_000, calls: 600, mistakes: 7 })] });
  fake.frame();
  await expect.element(page.getByText(/entries shown; the log has 40,000 entries$/)).toBeVisible();
  await expect.element(page.getByRole("button", { name: "client mistakes 7" })).toBeVisible();
  await page.getByRole("button", { name: "client mistakes 7" }).click();
  await expect.element(page.getByText("The judge counts rules and not requests: Clients.")).toBeVisible();
  await page.getByRole("button", { name: "client mistakes 7" }).click();
  await page.getByRole("button", { name: "calls 600" }).click();
  expect(param("filter")).toBe("group:calls");
  await expect.element(line()).toHaveValue("group:calls");
  await expect.poll(() => (fake.frame(), textOf(page.getByRole("status").first())())).toBe("4 entries shown. 600 of the 12,913 entries in the log match");
  await expect.element(page.getByRole("button", { name: "calls 600" })).toHaveAttribute("aria-pressed", "true");
  await line().click();
  await userEvent.keyboard("{Escape}{Escape}");
  await expect.poll(() => param("filter")).toBeNull();
});

test("an address brings its filters, those of older links too", async () => {
  await opened("?session=m1&direction=in&method=tools/call&text=progress&show=calls,problems", twoClients());
  await expect.element(line()).toHaveValue("client:m1 direction:in method:tools/call progress group:calls problem:any");
});

test("what the server does not understand of a line is said under it, and filters nothing", async () => {
  await opened("", twoClients(), (path) => (path === "/api/filter" ? { error: "clint: is no word of the filter", completions: [] } : undefined));
  await userEvent.fill(line(), "clint:m1");
  await expect.poll(textOf(page.getByRole("alert"))).toBe("clint: is no word of the filter");
  await expect.element(line()).toHaveAttribute("aria-invalid", "true");
  expect(param("filter")).toBeNull();
});

/** A page whose filter lines are read when the test says so. */
async function readLater() {
  const readings = new Map<string, () => void>();
  await opened("", twoClients(), (path, query) => {
    if (path === "/api/search") return found([]);
    const reading = Promise.withResolvers<object>();
    readings.set(query.get("line") ?? "", () => reading.resolve({ error: null, completions: [] }));
    return reading.promise;
  });
  await line().click();
  return async (text: string) => {
    await vi.waitFor(() => expect(readings.keys()).toContain(text));
    readings.get(text)?.();
  };
}

test("of two lines that are being read the newest filters, in whatever order the answers come", async () => {
  const read = await readLater();
  await userEvent.keyboard("group:calls{Enter} ping{Enter}");
  await read("group:calls ping");
  await expect.poll(() => param("filter")).toBe("group:calls ping");
  await read("group:calls");
  await userEvent.keyboard("{End}");
  await expect.element(line()).toHaveValue("group:calls ping");
  expect(param("filter")).toBe("group:calls ping");
});

test("what is typed while a line is being read stays, and so does an empty field", async () => {
  const read = await readLater();
  await userEvent.keyboard("ping{Enter}x");
  await read("ping");
  await read("pingx");
  await expect.poll(() => param("filter")).toBe("pingx");
  await expect.element(line()).toHaveValue("pingx");
  await userEvent.keyboard("y{Enter}");
  await userEvent.fill(line(), "");
  await read("pingxy");
  await expect.poll(() => param("filter")).toBeNull();
  await expect.element(line()).toHaveValue("");
});

test("words are completed by keyboard, as the server offers them", async () => {
  const offers: Readonly<Record<string, object>> = {
    cl: { start: 0, end: 2, insert: "client:", label: "client:", note: "a client" },
    "client:lab": { start: 7, end: 10, insert: "m1 ", label: "client:m1", note: "lab agent" },
  };
  await opened("", twoClients(), (path, query) => (path === "/api/filter" ? { error: null, completions: [offers[query.get("line") ?? ""]].filter(Boolean) } : undefined));
  await line().click();
  await userEvent.keyboard("cl");
  await expect.element(page.getByRole("option", { name: /^client:/ })).toBeVisible();
  await userEvent.keyboard("{ArrowDown}");
  await expect.element(page.getByRole("option", { name: /^client:/ })).toHaveAttribute("aria-selected", "true");
  await userEvent.keyboard("{Enter}");
  await expect.element(line()).toHaveValue("client:");
  await userEvent.keyboard("lab");
  await expect.element(page.getByRole("option", { name: /^client:m1/ })).toBeVisible();
  await userEvent.keyboard("{Tab}");
  await expect.element(line()).toHaveValue("client:m1 ");
  await expect.poll(() => param("filter")).toBe("client:m1 ");
  await expect.element(line()).toHaveFocus();
  expect(line().element().getAttribute("aria-expanded")).toBe("false");
});

test("what the feed marks is added to what a search found", async () => {
  const story = twoClients();
  const { fake } = await opened("", story, (path, query) => (path === "/api/search" && query.get("filter") === "ping" ? found([], { last: story.entries.length }) : undefined));
  await userEvent.fill(line(), "ping");
  await vi.waitFor(() => expect(new URLSearchParams(fake.source.url.split("?")[1]).get("passes")).toBe("ping"));
  fake.source.hello("a", { resumed: true });
  const { seq } = story.request("s1", 9, "ping");
  for (const entry of withViews(story.entries).slice(-2)) fake.source.entry("a", entry.seq, { ...entry, view: { ...entry.view, passes: entry.seq === seq } });
  fake.frame();
  await expect.poll(() => rows().filter((text) => text?.includes("ping")).length).toBe(1);
  expect(rows().length).toBe(2);
});

test("nothing that passes in the whole log is said, with the way back", async () => {
  const { fake } = await opened("?text=nowhere", twoClients(), (path) => (path === "/api/search" ? found([]) : undefined));
  await expect.poll(() => (fake.frame(), textOf(page.getByRole("heading", { level: 2 }))())).toBe("None of the 12,913 entries in the log passes the filter");
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await expect.poll(() => (fake.frame(), grid().query())).not.toBeNull();
});

const LISTS = ["requests", "all"];

test.each(LISTS)("a log that cannot be searched is said, no row of an earlier filter stands there, and one button tries again: %s", async (view) => {
  const story = twoClients();
  let refused = true;
  const { fake } = await openTrace(`?view=${view}`, story, (path) => (path !== "/api/search" || refused ? undefined : found(story.entries.filter(({ exchange }) => exchange === 2))));
  await expect.poll(() => rows().some((text) => text?.includes("s1"))).toBe(true);
  await userEvent.fill(line(), "client:m1");
  await expect.element(page.getByRole("heading", { name: "The log could not be searched" })).toBeVisible();
  await expect.element(page.getByRole("alert").filter({ hasText: "there is no such thing" })).toBeVisible();
  expect(rows()).toEqual([]);
  refused = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => (fake.frame(), rows().some((text) => text?.includes("m1")))).toBe(true);
  expect(rows().some((text) => text?.includes("s1"))).toBe(false);
});

test("problems that repeat are one line, which unfolds", async () => {
  const story = new Story();
  for (let id = 1; id <= 30; id += 1) {
    const { exchange } = story.request("s9", 7, "ping");
    story.add({ kind: "client.misuse", session: "s9", exchange, what: "id used before", clause: "c", detail: `id ${id}` });
  }
  const { fake } = await openTrace("?filter=problem:mistake", new Story(), (path) => (path === "/api/search" ? found(story.entries, { matched: 30 }) : undefined));
  fake.source.say("rows", { table: "sessions", rows: [sessionRow()] });
  await expect.poll(() => (fake.frame(), rows().find((text) => text?.includes("× 30")))).toMatch(/ping.*noted.*id used before/);
  await page.getByRole("button", { name: "Unfold" }).click();
  await expect.poll(() => rows().filter((text) => text?.includes("ping")).length).toBeGreaterThan(10);
});

test("it is accessible in light and dark, with and without the panel", { timeout: 60_000 }, async () => {
  const story = twoClients();
  story.add({ kind: "client.misuse", session: "s1", what: "w", clause: "c", detail: "d", exchange: null });
  story.add({ kind: "message.dropped", session: "s1", call: null, task: null, why: "gone", rpc: "notification", method: "x", id: null, message: {} });
  story.emit({ exchange: 9, session: "s1", stream: "p9", position: 1 }, { method: "x" });
  const { fake } = await opened("", story);
  fake.source.say("gap", { reason: "skipped", first: 90, last: 99 }, "a-99");
  fake.frame();
  await expect.element(page.getByText("gap: skipped")).toBeVisible();
  await inBothThemes(() => expectAccessible());
  await grid().getByRole("row").nth(2).click();
  await expect.element(drawer()).toBeVisible();
  await inBothThemes(() => expectAccessible());
});
