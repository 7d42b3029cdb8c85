import { expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { cancelledCall, entryOf, rowsOf as exchangesOf, progressEntry, sessionRow, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { openTrace } from "~/testing/view";
import type { Viewed } from "~/trace/entry";
import { layoutOf, pictureOf } from "~/widgets/ladder/picture";
import { rowsOf } from "~/widgets/ladder/rows";
import { svgOf } from "~/widgets/ladder/sheet";

const STREAM = { call: "c1", exchange: 4, stream: "p1" };
const request = (seq: number, ms: number, id: number, name: string) =>
  entryOf(seq, ms, "message.received", { rpc: "request", method: "tools/call", id, message: { method: "tools/call", params: { name, arguments: {} } }, exchange: 4 });
const EVENTS = withViews([
  request(1, 0, 7, "progress"),
  entryOf(2, 0.1, "call.started", { tool: "progress", method: "tools/call", cause: 1, ...STREAM }),
  ...[1, 2, 3].map((step) => progressEntry(step * 2 + 1, step * 10, step, 10, { position: step, cause: 2, ...STREAM })),
  entryOf(9, 35, "message.delivered", { cause: 3, first: 1, last: 3, ...STREAM }),
  entryOf(10, 40, "message.received", { rpc: "notification", method: "notifications/cancelled", id: null, message: { params: { requestId: 7, reason: "enough" } } }),
  entryOf(11, 40.1, "call.cancelled", { by: "notification", reason: "enough", effect: true, cause: 10, ...STREAM }),
]);

const ladder = page.getByRole("listbox");
const row = (name: string | RegExp) => page.getByRole("option", { name });
const text = "by the client (enough) after 3 of 10 steps, stopped in 2.1 ms, nothing sent afterwards";

/** The ladder of a call whose evidence these entries are. */
function callLadder(query = "", events: readonly Viewed[] = EVENTS) {
  const exchanges = exchangesOf(events).map((each) => Object.assign(each, { ending: { ...each.ending, state: "cancelled", text } }));
  return openTrace(`?call=run.c1${query}`, new Story(), (path) => (path === "/api/calls/run.c1" ? { call: cancelledCall(), evidence: { complete: true, events, exchanges } } : undefined));
}

test("the ladder of a call says what became of it and draws its messages; a fold opens, and a row shows its message first", async () => {
  await callLadder();
  await expect.element(page.getByText(`progress, cancelled ${text}`)).toBeVisible();
  await expect.element(row(/^0 ms, from s1 agent 1\.2 to MCP Probe: tools\/call request · id 7/)).toBeVisible();
  const fold = row(/3 × notifications\/progress · 1\/10 to 3\/10/);
  await expect.element(fold).toBeVisible();
  await inBothThemes(() => expectAccessible());
  await fold.click();
  await expect.element(row(/notifications\/progress · 2\/10/)).toBeVisible();
  await row(/at MCP Probe: cancelled by the client · "enough"/).click();
  expect(new URLSearchParams(location.search).get("at")).toBe("run-11");
  await row(/tools\/call request/).click();
  await expect.element(page.getByRole("complementary")).toMatchTextContent(/^tools\/call request #1.*"params"/);
  await inBothThemes(() => expectAccessible());
});

test("the keyboard goes from row to row and opens them", async () => {
  await callLadder();
  await expect.element(row(/tools\/call request/)).toBeVisible();
  ladder.element().focus();
  await userEvent.keyboard("{End}");
  await vi.waitFor(() => expect(document.getElementById(ladder.element().getAttribute("aria-activedescendant") ?? "")?.textContent).toMatch(/cancelled by the client/));
  await userEvent.keyboard("{Home}{ArrowDown} ");
  await expect.element(row(/notifications\/progress · 2\/10/)).toBeVisible();
  await userEvent.keyboard("{Home}{Enter}");
  await expect.element(page.getByRole("complementary")).toBeVisible();
});

test("what is searched is counted and found one after the other, and the rest stays in sight", async () => {
  await callLadder("&find=enough");
  const found = page.getByRole("group", { name: "What was found" });
  await expect.element(found).toMatchTextContent(/2 found/);
  await found.getByRole("button", { name: "Next one found" }).click();
  await expect.element(found).toMatchTextContent(/1 of 2/);
  await found.getByRole("button", { name: "Next one found" }).click();
  await expect.element(found).toMatchTextContent(/2 of 2/);
  await expect.element(row(/tools\/call request/)).toBeInTheDocument();
});

test("the list has the same steps in words, nothing folded", async () => {
  await callLadder("&as=list");
  const rows = page.getByRole("grid").getByRole("row");
  await expect.element(rows.filter({ hasText: "3/10" })).toMatchTextContent(/MCP Probes1 agent 1\.2notifications\/progress3\/10/);
  expect(rows.elements()).toHaveLength(7);
  await expectAccessible();
});

/** What `/api/search` answers for the requests of a client. */
const ofClient = (session: string) => (path: string, query: URLSearchParams) => {
  if (path !== "/api/search" || query.get("filter") !== `client:${session}`) return undefined;
  const handshake = entryOf(50, -9, "message.received", { session: null, exchange: 3, rpc: "request", method: "initialize", id: 0, message: {} });
  const events = withViews([handshake, ...EVENTS.map((each) => ({ ...each, seq: each.seq + 50, cause: each.cause === null ? null : each.cause + 50 }))]);
  return { run: "a", matched: 2, total: 9, last: 100, next: null, left_out: 0, events, exchanges: exchangesOf(events) };
};

test("the ladder of a client has its handshake, follows the feed, and is that of the newest client where none is named", async () => {
  const { fake, show } = await openTrace("?view=ladder", new Story(), ofClient("s2"));
  show({ sessions: [sessionRow({ id: "s1", last_at: 1 }), sessionRow({ id: "s2", last_at: 2 })] });
  await expect.poll(() => (fake.frame(), row(/initialize request/).query())).not.toBeNull();
  await expect.element(page.getByRole("combobox", { name: "Client" })).toHaveValue("s2");
  await expect.element(row(/tools\/call request/)).toBeVisible();
  const newer = withViews([entryOf(120, 90, "message.received", { session: "s2", exchange: 9, rpc: "request", method: "ping", id: 8, message: {} })]);
  fake.source.hello("a", { resumed: true });
  fake.source.say("rows", { table: "exchanges", rows: exchangesOf(newer).map((each) => Object.assign(each, { passes: true })) });
  for (const each of newer) fake.source.entry("a", each.seq, each);
  fake.frame();
  await expect.element(row(/ping request/)).toBeVisible();
});

test("no message of another client is on a ladder while the log is read", async () => {
  const story = new Story();
  story.request("s1", 1, "ping");
  const read = Promise.withResolvers<undefined>();
  const answer = (path: string, query: URLSearchParams) => (path === "/api/search" ? read.promise.then(() => ofClient("s2")(path, query)) : undefined);
  const { fake, show } = await openTrace("?view=ladder", story, answer);
  show({ sessions: [sessionRow({ id: "s1", last_at: 1 }), sessionRow({ id: "s2", last_at: 2 })] });
  await expect.element(page.getByRole("combobox", { name: "Client" })).toHaveValue("s2");
  await expect.element(page.getByRole("status").filter({ hasText: "Reading the log: 0 entries so far" })).toBeVisible();
  expect(row(/ping/).query()).toBeNull();
  read.resolve(undefined);
  await expect.poll(() => (fake.frame(), row(/tools\/call request/).query())).not.toBeNull();
  expect(row(/ping/).query()).toBeNull();
});

test("a paused ladder shows another client once it is chosen, and stands still again", async () => {
  const pings = withViews([entryOf(30, 0, "message.received", { exchange: 2, rpc: "request", method: "ping", id: 8, message: {} })]);
  const ofOne = { run: "a", matched: 1, total: 9, last: 100, next: null, left_out: 0, events: pings, exchanges: exchangesOf(pings) };
  const { fake, show } = await openTrace("?view=ladder", new Story(), (path, query) => (query.get("filter") === "client:s1" ? ofOne : ofClient("s2")(path, query)));
  show({ sessions: [sessionRow({ id: "s1", last_at: 1 }), sessionRow({ id: "s2", last_at: 2 })] });
  await expect.poll(() => (fake.frame(), row(/initialize request/).query())).not.toBeNull();
  await page.getByRole("button", { name: "Pause" }).click();
  await userEvent.selectOptions(page.getByRole("combobox", { name: "Client" }), "s1");
  await expect.poll(() => (fake.frame(), row(/ping request/).query())).not.toBeNull();
  expect([row(/initialize request/).query(), page.getByText(/Reading the log/).query()]).toEqual([null, null]);
  fake.source.hello("a", { resumed: true });
  fake.source.entry("a", 120, entryOf(120, 90, "message.received", { exchange: 2, rpc: "request", method: "tools/list", id: 9, message: {} }));
  fake.frame();
  await expect.element(page.getByRole("button", { name: "Resume (1 new)" })).toBeVisible();
  expect(row(/tools\/list/).query()).toBeNull();
  await page.getByRole("button", { name: /^Resume/ }).click();
  await expect.element(row(/tools\/list/)).toBeVisible();
});

test("a ladder of a log that cannot be searched says so, and one button tries again", async () => {
  let refused = true;
  const { fake, show } = await openTrace("?view=ladder", new Story(), (path, query) => (refused ? undefined : ofClient("s2")(path, query)));
  show({ sessions: [sessionRow({ id: "s2" })] });
  await expect.element(page.getByRole("heading", { name: "The log could not be read" })).toBeVisible();
  await expect.element(page.getByRole("alert").filter({ hasText: "there is no such thing" })).toBeVisible();
  expect(page.getByText(/Reading the log/).query()).toBeNull();
  refused = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => (fake.frame(), row(/initialize request/).query())).not.toBeNull();
  await expect.element(page.getByRole("heading", { name: "The log could not be read" })).not.toBeInTheDocument();
});

test("a name that a client was given leads to its newest session, and an old address to the ladder of a client", async () => {
  const { fake, show } = await openTrace("?view=ladder&client=acme", new Story(), ofClient("s2"));
  show({ sessions: [sessionRow({ id: "s1", label: "acme", last_at: 1 }), sessionRow({ id: "s2", label: "acme", last_at: 2 }), sessionRow({ id: "s3", last_at: 3 })] });
  await expect.poll(() => (fake.frame(), row(/tools\/call request/).query())).not.toBeNull();
  await expect.element(page.getByRole("combobox", { name: "Client" })).toHaveValue("s2");
});

/** Until the next frame is painted. */
const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

test("of ten thousand messages only those in view exist, wherever it is scrolled and at another pace", async () => {
  const pings = Array.from({ length: 5_000 }, (_, index) => [
    entryOf(2 * index + 1, 2 * index, "message.received", { rpc: "request", method: "ping", id: index, message: { method: "ping" } }),
    entryOf(2 * index + 2, 2 * index + 1, "message.emitted", { rpc: "response", method: null, id: index, message: { result: {} }, cause: 2 * index + 1 }),
  ]).flat();
  await callLadder("", pings);
  await expect.element(row(/ping request · id 0$|ping request · id 0 · /).first()).toBeVisible();
  const box = ladder.element();
  expect(box.querySelectorAll("[role=option]").length).toBeLessThan(100);
  box.scrollTo({ top: 200_000 });
  await painted();
  box.scrollTo({ top: 380_000 });
  await painted();
  (page.getByRole("radio", { name: "Time to scale" }).element() as HTMLInputElement).click();
  (page.getByRole("button", { name: "Zoom in" }).element() as HTMLButtonElement).click();
  await painted();
  expect(box.querySelectorAll("[role=option]").length).toBeLessThan(100);
});

test.each([390, 1280, 1920])("at %d pixels no label crosses a lane, and its end stays where there is room", async (width) => {
  await page.viewport(width, 800);
  await callLadder("", withViews([entryOf(1, 0, "message.received", { rpc: "request", method: "tools/call", id: 7, message: { params: { name: "echo", arguments: { text: "a word ".repeat(40) } } } })]));
  await expect.element(row(/tools\/call request/)).toBeVisible();
  const label = [...row(/tools\/call request/).element().querySelectorAll("text")].at(-1);
  const [, second] = [...document.querySelectorAll("svg[role=presentation] path[d*=V]")].map((line) => line.getBoundingClientRect().left);
  expect(label?.getBoundingClientRect().right).toBeLessThan(second ?? 0);
  expect(label?.textContent).toMatch(width === 390 ? /echo.*…$/ : /a word.*… · no answer so far$/);
});

test("a call that is not known says so", async () => {
  await openTrace("?call=run.c9");
  await expect.element(page.getByRole("heading", { name: "This call could not be read" })).toBeVisible();
});

test("the file that is saved needs nothing else: it has a title, its lanes and its colours", () => {
  const picture = pictureOf(EVENTS, exchangesOf(EVENTS), "s1 agent <b>");
  const svg = svgOf({ title: "Ladder of s1", picture, origin: undefined, pace: "even", layout: layoutOf(rowsOf(picture.steps, new Set()), "even", 1) });
  const file = new DOMParser().parseFromString(svg, "image/svg+xml");
  expect(file.querySelector("parsererror")).toBeNull();
  expect(file.documentElement.querySelector("title")?.textContent).toBe("Ladder of s1");
  expect(file.documentElement.textContent).toMatch(/s1 agent <b>MCP Probe.*tools\/call request.*3 × notifications\/progress.*cancelled by the client/);
  expect(svg).not.toMatch(/var\(|class=|href/);
  expect(svg).toMatch(/fill="rgb\(|fill="color\(/);
});

test("what does not fit on one page of paper goes on on the next, each row once, and is the whole page", async () => {
  const pings = Array.from({ length: 60 }, (_, index) => entryOf(index + 1, index, "message.received", { rpc: "request", method: "ping", id: index, message: { method: "ping" } }));
  await callLadder("", pings);
  await expect.element(row(/ping request · id 0/).first()).toBeVisible();
  dispatchEvent(new Event("beforeprint"));
  const printed = document.body.lastElementChild;
  const sheets = [...document.body.querySelectorAll("svg[role=img]")];
  expect(sheets.map((sheet) => sheet.querySelector("title")?.textContent)).toEqual(["Ladder of call run.c1, page 1 of 2", "Ladder of call run.c1, page 2 of 2"]);
  const ids = sheets.flatMap((sheet) => [...(sheet.textContent ?? "").matchAll(/id (\d+) /g)].map(([, id]) => Number(id)));
  expect(ids).toEqual(pings.map((_, index) => index));
  dispatchEvent(new Event("afterprint"));
  await vi.waitFor(() => expect(document.body.lastElementChild).not.toBe(printed));
});
