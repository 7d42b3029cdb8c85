import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { violations } from "./axe.ts";
import { launch, openPage } from "./browser.ts";
import { WIDTHS, misplaced } from "./layout.ts";
import { type Story, tell } from "./rich-story.ts";
import { freePort, type Server, startServer } from "./server.ts";

// a machine that runs all tests at once may take long for what usually takes a moment
const SOON = { timeout: 20_000 };

let server: Server;
let browser: Browser;
let story: Story;

beforeAll(async () => {
  server = await startServer(await freePort());
  browser = await launch();
  const { page, complaints } = await openPage(browser, `${server.url}/dashboard/`);
  for (const view of EMPTY) {
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view }).click();
    await page.getByRole("heading", { name: /^(No client has connected since the server started|Connect your client)$/ }).waitFor(SOON);
    empty.push([view, await violations(page)]);
  }
  empty.push(["complaints", complaints]);
  await page.context().close();
  story = await tell(server.url);
});

afterAll(async () => {
  await story?.end();
  await browser?.close();
  await server?.stop();
});

const EMPTY = ["Clients", "Trace", "Calls"];
const empty: [string, string[]][] = [];

test("each view says how to connect a client until one has, and is accessible then", () => {
  expect(empty).toEqual([...EMPTY, "complaints"].map((view) => [view, []]));
});

/** Each view: its address, and a text that it has when it is complete. */
const VIEWS: readonly (readonly [name: string, path: (of: Story) => string, shows: string | RegExp])[] = [
  ["Trace", () => "/trace", "tools/call"],
  ["Trace with all entries", () => "/trace?view=all", "notifications/progress"],
  ["Trace with an entry", ({ event }) => `/trace?at=${event}`, "Show the whole entry"],
  ["Trace of one client", ({ session }) => `/trace?filter=client:${session}`, "desk-agent"],
  ["Tasks", () => "/calls/tasks", "task_with_progress"],
  ["Task", ({ task }) => `/calls/tasks/${task}`, "call settled"],
  ["Calls", () => "/calls", "disconnected"],
  ["Calls of one tool", () => "/calls?tool=progress", "Export these:"],
  ["Call", ({ cancelled }) => `/calls/${cancelled}`, "call settled"],
  ["Clients", () => "/clients", /rules exercised$/],
  ["Client", ({ session }) => `/clients/${session}`, /^Exercised: \d+ of/],
  ["Tool hosts", () => "/server/hosts", "Tool hosts are off"],
  ["Ladder of a client", ({ session }) => `/trace?view=ladder&filter=client:${session}`, /tools\/call request/],
  ["Ladder of a call", ({ cancelled }) => `/trace?call=${cancelled}&time=scale`, /nothing sent afterwards/],
  ["Gateway", () => "/gateway", "Does your gateway change the protocol?"],
  ["Server", () => "/server", "Toolsets"],
  ["Streams", () => "/server/streams?streams=all", "client disconnected"],
  ["Limits", () => "/server/limits", "max_sessions"],
  ["Help", () => "/server/help?text=progress", "A good client shows"],
];

const shown = VIEWS.map(([name, path, shows]) => ({ name, path, shows }));

test.each(shown)("$name, opened by its address, is complete, quiet, accessible at each width in light and dark, and can be gone through by keyboard", async ({ path, shows }) => {
  const { page, complaints } = await openPage(browser, `${server.url}/dashboard${path(story)}`, { colorScheme: "light", hasTouch: true });
  await page.locator("main").getByText(shows).filter({ visible: true }).first().waitFor(SOON);
  expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
  expect([...(await focusedByTab(page))]).toContain("MAIN");
  expect(await violations(page)).toEqual([]);
  for (const width of WIDTHS) {
    await resize(page, width, 844);
    await expect.poll(() => misplaced(page), SOON).toEqual([]);
    expect({ width, found: await violations(page, ...OF_A_WIDTH) }).toEqual({ width, found: [] });
  }
  for (const width of [WIDTHS[0], WIDTHS.at(-1) ?? 0]) {
    await resize(page, width, 844);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")).toBe(true);
    // style sheets alone know of dark, so all but the contrast is what it was
    expect({ width, found: await violations(page, "color-contrast") }).toEqual({ width, found: [] });
  }
  // 1280 by 1024 pixels at 400 %
  await resize(page, 320, 256);
  await expect.poll(() => misplaced(page), SOON).toEqual([]);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("on a phone the line below the calls is in the window, wherever the page stands", async () => {
  const { page } = await openPage(browser, `${server.url}/dashboard/calls`, { viewport: { width: 390, height: 844 } });
  const link = page.getByRole("link", { name: "CSV" });
  await link.waitFor(SOON);
  for (const top of [0, 10_000]) {
    await page.evaluate(`scrollTo(0, ${top})`);
    const box = await link.boundingBox();
    expect(box && box.y + box.height).toBeLessThanOrEqual(844);
  }
  await page.context().close();
});

// what another width can break; the names, roles and titles stay as they are
const OF_A_WIDTH = ["scrollable-region-focusable", "target-size"];

/** Gives the page another size, and waits until it is drawn. */
async function resize(page: Page, width: number, height: number): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
}

/** The parts of the page that get the focus when Tab is pressed, until it comes to MAIN. */
async function focusedByTab(page: Page): Promise<Set<string>> {
  const seen = new Set<string>();
  // a drawer takes the focus when it opens, so that the header is not always on the way
  const focused = () => page.evaluate<string>("document.activeElement.closest('header, main') ? document.activeElement.closest('header, main').tagName : document.activeElement.tagName");
  for (let presses = 0; presses < 40 && !seen.has("MAIN"); presses += 1) {
    await page.keyboard.press("Tab");
    seen.add(await focused());
  }
  return seen;
}

test.each([
  ["Calls", "/calls", /\/calls\/[^/]+\.c\d+$/],
  ["Tasks", "/calls/tasks", /\/calls\/tasks\/[^/]+$/],
  ["Trace", "/trace", /\/trace\?at=/],
])("a row of %s opens by arrow and Enter", async (_name, path, address) => {
  const { page } = await openPage(browser, `${server.url}/dashboard${path}`);
  const grid = page.locator("[role=grid], [role=treegrid]");
  await grid.getByRole("row").nth(2).waitFor(SOON);
  await grid.locator("[role=row][tabindex='0']").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.url(), SOON).toMatch(address);
  await page.context().close();
});
