import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { violations } from "./axe.ts";
import { launch, openPage } from "./browser.ts";
import { all, LegacyClient } from "./client.ts";
import { freePort, type Server, showFile, startServer } from "./server.ts";

// a machine that runs all tests at once may take long for what usually takes a moment
const SOON = { timeout: 20_000 };

let server: Server;
let browser: Browser;
let client: LegacyClient;

beforeAll(async () => {
  server = await startServer(await freePort());
  browser = await launch();
  client = await new LegacyClient(server.url).open("careless");
  await all(client.request(1, "tools/call", { name: "simple_tool", arguments: {} }));
  // an id may be used once; the same bytes would be a transport that repeats itself
  await all(client.request(1, "tools/call", { name: "simple_tool", arguments: { delayMs: 1 } }));
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const RULE = "jsonrpc.id-unused-before";

async function opened(path: string, width = 1280): Promise<{ page: Page; complaints: string[] }> {
  return openPage(browser, `${server.url}/dashboard${path}`, { viewport: { width, height: 800 } });
}

test("the evidence of a finding opens its entry in Trace, which leads back to the finding", async () => {
  const { page, complaints } = await opened("");
  await page.getByRole("link", { name: "careless 1.0" }).click(SOON);
  const finding = page.locator(`details[id="${RULE}"]`);
  await finding.getByRole("link", { name: "2025-11-25/basic/index.md" }).waitFor(SOON);
  await finding.getByText("tools/call request").last().waitFor(SOON);
  await finding.getByRole("link", { name: /^#\d+$/ }).last().click();
  const panel = page.getByRole("complementary");
  await panel.getByRole("heading", { name: "tools/call" }).waitFor(SOON);
  await panel.getByRole("link", { name: RULE }).click();
  await expect.poll(() => page.url(), SOON).toMatch(/\/clients\/s1#jsonrpc\.id-unused-before$/);
  await finding.getByText("Expected").waitFor(SOON);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("the call that breaks the rule is marked, and not the one before it that shows it", async () => {
  const { page } = await opened("/calls");
  const marked = page.getByRole("row").filter({ hasText: RULE });
  await marked.waitFor(SOON);
  expect(await marked.count()).toBe(1);
  await page.context().close();
});

test("a verdict appears on the open report when the client has earned it", async () => {
  const { page } = await opened("/clients/s1");
  await page.locator(`details[id="${RULE}"]`).waitFor(SOON);
  expect(await page.locator('details[id="jsonrpc.params-object"]').count()).toBe(0);
  await all(client.request(7, "prompts/list", null as never));
  await page.locator('details[id="jsonrpc.params-object"]').getByText("decided just now").waitFor(SOON);
  expect(await page.getByRole("status", { name: "Decided just now" }).textContent()).toMatch(/^✗ /);
  await page.context().close();
});

test.each([390, 1440])("the pages of the clients are accessible in light and dark and fit a width of %i", async (width) => {
  for (const path of ["/clients", "/clients/s1"]) {
    const { page, complaints } = await opened(path, width);
    await page.getByText("exercised").first().waitFor(SOON);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await violations(page)).toEqual([]);
    }
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    expect(complaints).toEqual([]);
    await page.context().close();
  }
});

test("what is saved of a client is shown again without its server, verdicts and all", async () => {
  const folder = await mkdtemp(join(tmpdir(), "probe-"));
  const saving = await opened("/export?client=s1");
  const download = saving.page.waitForEvent("download", SOON);
  await saving.page.getByRole("link", { name: "Session file" }).click(SOON);
  const file = join(folder, "mine.mcpprobe");
  await (await download).saveAs(file);
  await saving.page.context().close();
  const shown = await showFile(await freePort(), file);
  try {
    const { page, complaints } = await openPage(browser, `${shown.url}/dashboard/clients/s1`, { viewport: { width: 390, height: 800 } });
    await page.getByRole("region", { name: "File" }).getByText("It has the entries of s1. Nothing of that is missing.").waitFor(SOON);
    await page.locator(`details[id="${RULE}"]`).waitFor(SOON);
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.goto(`${shown.url}/dashboard/calls`);
    await page.getByText("simple_tool").first().waitFor(SOON);
    expect(complaints).toEqual([]);
    await page.context().close();
  } finally {
    await shown.stop();
    await rm(folder, { recursive: true });
  }
});
