import { createServer, type IncomingMessage, request, type Server as HttpServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, openPage } from "./browser.ts";
import { LegacyClient } from "./client.ts";
import { freePort, type Server, startServer } from "./server.ts";

// The dashboard below a path that a gateway takes off. It says nothing of it to the server: nobody has configured that.

const PREFIX = "/tools/probe";
const SOON = { timeout: 10_000 };

let server: Server;
let gateway: HttpServer;
let browser: Browser;
/** Where the gateway has the probe. */
let url: string;
/** What was asked of the gateway for something else than the probe. */
const astray: string[] = [];

function passOn(from: IncomingMessage, to: ServerResponse): void {
  const asked = from.url ?? "";
  if (!asked.startsWith(`${PREFIX}/`)) {
    astray.push(asked);
    to.writeHead(404).end();
    return;
  }
  const upstream = request(`${server.url}${asked.slice(PREFIX.length)}`, { method: from.method, headers: from.headers }, (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(to);
  });
  upstream.on("error", () => to.destroy());
  to.on("close", () => upstream.destroy());
  from.pipe(upstream);
}

beforeAll(async () => {
  server = await startServer(await freePort());
  gateway = createServer(passOn);
  await new Promise<void>((resolve) => {
    gateway.listen(0, "127.0.0.1", resolve);
  });
  url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}${PREFIX}`;
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  gateway?.closeAllConnections();
  gateway?.close();
  await server?.stop();
});

test("below a path the pages, their feed, the API, links and reloads work", async () => {
  const client = new LegacyClient(url);
  await client.open("behind");
  await client.ask(1, "tools/call", { name: "simple_tool", arguments: {} });
  const { page, complaints } = await openPage(browser, `${url}/`);
  expect(new URL(page.url()).pathname).toBe(`${PREFIX}/dashboard/clients`);
  await page.getByRole("link", { name: "Calls" }).click();
  await page.getByRole("row").filter({ hasText: "simple_tool" }).first().click(SOON);
  await page.getByRole("heading", { name: "simple_tool, completed" }).waitFor(SOON);
  expect(new URL(page.url()).pathname.startsWith(`${PREFIX}/dashboard/calls/`)).toBe(true);
  // the same view from the server, two parts below the dashboard, with assets and data of its own
  await page.reload();
  await page.getByRole("heading", { name: "simple_tool, completed" }).waitFor(SOON);
  await page.goto(`${url}/dashboard/trace`);
  const download = page.getByRole("link", { name: "as the API gives it" });
  await page.getByRole("row").filter({ hasText: "tools/call" }).first().click();
  expect(await download.getAttribute("href")).toMatch(new RegExp(`^${PREFIX}/api/events/[0-9]+$`, "u"));
  expect(complaints).toEqual([]);
  expect(astray).toEqual([]);
});
