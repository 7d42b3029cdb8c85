import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, openPage } from "./browser.ts";
import { startLateProxy } from "./late-proxy.ts";
import { checkGateway, freePort, type Server, startServer } from "./server.ts";

// a machine that runs all tests at once may take long for what usually takes a moment
const SOON = { timeout: 20_000 };

let server: Server;
let browser: Browser;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mcp-probe-"));
  server = await startServer(await freePort());
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("a run that the command made is shown, and its evidence leads into the log of the probe", async () => {
  const gateway = await startLateProxy(server.url, 1);
  const file = join(folder, "run.json");
  // Node.js makes one header of two with the same name
  await checkGateway(server.url, gateway.url, file, "headers.lost");
  gateway.stop();
  const { page, complaints } = await openPage(browser, `${server.url}/dashboard/gateway`);
  await page.getByLabel("Open a result file").setInputFiles(file);
  await page.getByText("The gateway passes on all of the protocol that was checked.").waitFor(SOON);
  await page.getByText("X-Twice arrived as").waitFor(SOON);
  // what stands still is not called live
  const connection = page.getByRole("status", { name: "Connection" });
  expect(await connection.textContent()).toBe("saved file");
  await page.getByRole("link", { name: "headers", exact: true }).click();
  const ways = page.getByRole("list", { name: "What both ends saw with the gateway" });
  await ways.getByRole("link", { name: /^#\d+$/ }).first().click();
  await expect.poll(() => page.url(), SOON).toMatch(/\/trace\?at=[0-9a-f]+-\d+$/);
  expect(await connection.textContent()).toBe("live");
  await page.goBack();
  await ways.waitFor(SOON);
  expect(complaints).toEqual([]);
});
