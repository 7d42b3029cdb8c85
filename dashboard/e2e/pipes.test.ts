import type { Browser, Page } from "playwright";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { launch, openPage } from "./browser.ts";
import { cable, overStdio, overWebSocket } from "./pipes.ts";
import { freePort, type Server, startServer } from "./server.ts";

// a machine that runs all tests at once may take long for what usually takes a moment
const SOON = { timeout: 20_000 };
// longer than a client below takes to come back, also on such a machine
const ABANDONED_S = 15;

let port: number;
let server: Server;
let browser: Browser;
const complaints: string[][] = [];

beforeAll(async () => {
  port = await freePort();
  server = await startServer(port, "--stream-min-s", "0", "--stream-max-s", String(ABANDONED_S));
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

afterEach(() => {
  // oxlint-disable-next-line vitest/no-standalone-expect -- of each test: no page may complain
  expect(complaints.flat()).toEqual([]);
});

async function open(url: string, path: string): Promise<Page> {
  const opened = await openPage(browser, `${url}/dashboard${path}`);
  complaints.push(opened.complaints);
  return opened.page;
}

/** The row of a client's draft stream in the table of streams, with what its cells say. */
async function streamOf(page: Page, session: string): Promise<(head: string) => Promise<string>> {
  const table = page.getByRole("table", { name: "Streams" });
  const row = table.getByRole("row").filter({ hasText: `${session}/` }).filter({ hasText: "resumable" });
  await row.waitFor(SOON);
  const heads = await table.getByRole("columnheader").allInnerTexts();
  return async (head) => (await row.getByRole("cell").nth(heads.indexOf(head)).innerText()).trim();
}

/** The session of a client, which is found on the page of all clients. */
async function sessionOf(page: Page, name: string, transport: string): Promise<string> {
  await page.getByRole("link", { name }).click(SOON);
  const row = page.getByRole("table", { name: "Sessions" }).getByRole("row").filter({ hasText: transport });
  await row.waitFor(SOON);
  const found = /\bs\d+\b/.exec(await row.innerText())?.[0];
  if (found === undefined) throw new Error(`no label of a session in ${await row.innerText()}`);
  return found;
}

test("a stream whose connection is lost waits, is resumed on another one, and completes", async () => {
  const way = await cable(port);
  const first = await overWebSocket(way.port, "draft-agent");
  const session = await sessionOf(await open(server.url, "/clients"), "draft-agent", "websocket");
  const page = await open(server.url, "/server/streams?streams=all");
  const ticket = await first.client.start(1, 40, 250);
  await first.client.progress(2);
  const says = await streamOf(page, session);
  await expect.poll(() => says("Reader"), SOON).toMatch(/^w\d+$/);
  expect(await says("Status")).toBe("open");
  const lost = await says("Reader");
  way.end();
  await expect.poll(() => says("Reader"), SOON).toMatch(/^client disconnected (now|\d+ s ago)$/);
  await expect.poll(async () => Number(await says("Waiting")), SOON).toBeGreaterThan(2);
  expect([await says("Status"), await says("Resumed")]).toEqual(["no reader", "0"]);
  const second = await overWebSocket(port, "draft-agent-again");
  second.client.resume(9, ticket, 3);
  await expect.poll(() => says("Reader"), SOON).toMatch(/^w\d+$/);
  expect(await says("Reader")).not.toBe(lost);
  expect(await says("Resumed")).toBe("1");
  const { result } = await second.client.until((message) => message["id"] === 9);
  expect(result).toMatchObject({ streamId: ticket.streamId, status: "completed" });
  await expect.poll(() => says("Status"), SOON).toBe("completed");
  // that the last one was delivered is a fact of its own, which comes after the end
  await expect.poll(async () => [await says("Waiting"), await says("Sent"), await says("Received")], SOON).toEqual(["0", "43", "43"]);
  const calls = await open(server.url, "/calls");
  await calls.getByRole("row").filter({ hasText: "draft-agent" }).filter({ hasText: "completed" }).filter({ hasText: "40/40" }).waitFor(SOON);
  const live = await open(server.url, `/trace?view=all&filter=client:${session}+group:streams`);
  await live.getByRole("row").filter({ hasText: "stream resumed" }).waitFor(SOON);
  second.close();
});

test("a stream for which nobody comes back is abandoned, and its work cancelled", async () => {
  const { client, close } = await overWebSocket(port, "forgetful-agent");
  const session = await sessionOf(await open(server.url, "/clients"), "forgetful-agent", "websocket");
  const page = await open(server.url, "/server/streams?streams=all");
  await client.start(1, 100, 1000);
  const says = await streamOf(page, session);
  close();
  await expect.poll(() => says("Reader"), SOON).toMatch(/^client disconnected (now|\d+ s ago)$/);
  await expect.poll(() => says("Status"), { timeout: 20_000 + ABANDONED_S * 1000 }).toBe("lost: abandoned");
  const calls = await open(server.url, "/calls");
  await calls.getByRole("row").filter({ hasText: "forgetful-agent" }).filter({ hasText: "disconnected" }).waitFor(SOON);
  const live = await open(server.url, `/trace?view=all&filter=client:${session}+group:streams`);
  await live.getByRole("row").filter({ hasText: "stream lost" }).filter({ hasText: "abandoned" }).waitFor(SOON);
});

test("the pages beside standard streams show the client that speaks there", async () => {
  const { client, url, close } = await overStdio("desktop-agent");
  const sessions = await open(url, "/clients");
  const session = await sessionOf(sessions, "desktop-agent", "stdio");
  const page = await open(url, "/server/streams?streams=all");
  // on a machine that runs all tests at once the row may come seconds later, and the call has to run still
  await client.start(1, 12, 500);
  const says = await streamOf(page, session);
  expect(await says("Reader")).toMatch(/^i\d+$/);
  await client.until((message) => message["method"] === "notifications/stream/end");
  await expect.poll(() => says("Status"), SOON).toBe("completed");
  const live = await open(url, "/trace?view=all&filter=kind:connection");
  await live.getByRole("row").filter({ hasText: "connection opened" }).filter({ hasText: "stdio" }).waitFor(SOON);
  // what shows an end is what `restart.test.ts` looks at
  for (const shown of [sessions, page, live]) await shown.context().close();
  expect(await close()).toBe(0);
});
