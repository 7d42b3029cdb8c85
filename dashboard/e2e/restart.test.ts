import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, openPage } from "./browser.ts";
import { all, modernCall } from "./client.ts";
import { freePort, type Server, startServer } from "./server.ts";

let port: number;
let server: Server;
let browser: Browser;

beforeAll(async () => {
  port = await freePort();
  server = await startServer(port);
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test.each(["SIGTERM", "SIGKILL"] as const)("the page comes back by itself after a restart by %s", async (signal) => {
  const { page, complaints } = await openPage(browser, `${server.url}/dashboard/trace`);
  const status = page.getByRole("status", { name: "Connection" });
  await all(modernCall(server.url, `before-${signal}`, "simple_tool", { delayMs: 1 }, { id: 1 }));
  await page.getByRole("row").filter({ hasText: `before-${signal}` }).first().waitFor();
  await server.stop(signal);
  await status.getByText(/disconnected|closed/).waitFor();
  server = await startServer(port);
  await status.getByText("live").waitFor({ timeout: 20_000 });
  await page.getByText(/restarted/i).first().waitFor();
  await all(modernCall(server.url, `after-${signal}`, "simple_tool", { delayMs: 1 }, { id: 1 }));
  await page.getByRole("row").filter({ hasText: `after-${signal}` }).first().waitFor();
  // what was seen before stays, and is told apart
  expect(await page.getByRole("row").filter({ hasText: `before-${signal}` }).count()).toBeGreaterThan(0);
  expect(complaints.filter((each) => !each.includes("ERR_"))).toEqual([]);
});
