import type { Locator, Page } from "playwright";
import { afterAll, expect, test } from "vitest";
import { all, type Json, LegacyClient } from "./client.ts";
import { SECRET, startDemoHost, type ToolHost } from "./tool-host.ts";
import { visiting } from "./visiting.ts";

// a machine that runs all tests at once may take long for what usually takes a moment
const SOON = { timeout: 20_000 };

let host: ToolHost;
const probe = visiting("--toolhost-secret", SECRET);

afterAll(async () => {
  await host?.kill();
});

/** The newest connection of the demo host, once it says so. */
function demo(page: Page, state: string): Locator {
  return page.getByRole("grid").getByRole("row").filter({ hasText: "demo" }).filter({ hasText: state }).first();
}

/** Begins to export so many pages, and gives the rest of the messages once two of them were reported. */
async function begin(client: LegacyClient, id: string, pages: number): Promise<AsyncGenerator<Json>> {
  const params = { name: "demo__export_messages", arguments: { pages, page_ms: 200 }, _meta: { progressToken: id } };
  const messages = client.request(id, "tools/call", params);
  for (let reports = 0; reports < 2; ) {
    const { value, done } = await messages.next();
    if (done === true) throw new Error("the call ended early");
    reports += Number((value as Json)["method"] === "notifications/progress");
  }
  return messages;
}

/** The page of the newest call of a client. */
async function callOf(name: string, state: string): Promise<Page> {
  const page = await probe.open("/calls");
  await page.getByRole("row").filter({ hasText: name }).filter({ hasText: state }).first().click(SOON);
  await page.getByRole("region", { name: "Deadlines" }).waitFor(SOON);
  return page;
}

test("a host appears with its tools, and leads from a call to its deadlines and to what it was told", async () => {
  const hosts = await probe.open("/server/hosts");
  await hosts.getByRole("heading", { name: "No tool host has connected since the server started" }).waitFor(SOON);
  host = startDemoHost(probe.server.url);
  await demo(hosts, "registered").waitFor(SOON);
  const client = await new LegacyClient(probe.server.url).open("hosted-agent");
  const rest = await begin(client, "long", 100);
  await demo(hosts, "registered").click();
  const detail = hosts.getByRole("complementary");
  await detail.getByText("demo__export_messages", { exact: true }).waitFor(SOON);
  await expect.poll(() => detail.getByRole("region", { name: "Dispatches" }).innerText(), SOON).toMatch(/In flight\s+1\s+Dispatched\s+1/);

  const call = await callOf("hosted-agent", "running");
  const deadlines = call.getByRole("region", { name: "Deadlines" });
  await expect.poll(() => deadlines.innerText(), SOON).toMatch(/Idle\s+30 s[^]*Extended\s+\d+ times[^]*Passed\s+neither[^]*tool host demo, as d1/);
  await client.notify("notifications/cancelled", { requestId: "long", reason: "seen enough" });
  expect(await all(rest)).not.toContainEqual(expect.objectContaining({ id: "long" }));
  await expect.poll(() => deadlines.innerText(), SOON).toMatch(/Host told to stop\s+host demo has stopped d1, [\d.]+ ms after tool\.cancel/);
  const evidence = call.getByRole("list", { name: "Evidence" });
  await evidence.getByText('host demo is told to stop d1 · cancelled by the client · "seen enough"').waitFor(SOON);
  await evidence.getByText(/^tool\.cancel · /).waitFor(SOON);
  await expect.poll(() => detail.getByRole("region", { name: "Dispatches" }).innerText(), SOON).toMatch(/In flight\s+0[^]*Cancelled\s+1/);
  await detail.getByRole("table", { name: /Recent entries/ }).getByText("host demo has stopped d1").waitFor(SOON);
});

test("a host that dies takes its calls with it, is shown closed, and comes back as another connection", async () => {
  const client = await new LegacyClient(probe.server.url).open("unlucky-agent");
  const rest = await begin(client, "doomed", 100);
  const hosts = await probe.open("/server/hosts?state=closed");
  await hosts.getByRole("heading", { name: "No tool host matches" }).waitFor(SOON);
  await host.kill();
  const answer = (await all(rest)).at(-1);
  expect(answer).toMatchObject({ id: "doomed", result: { isError: true } });
  await demo(hosts, "closed: client").waitFor(SOON);
  const call = await callOf("unlucky-agent", "tool error");
  await call.getByRole("list", { name: "Evidence" }).getByText(/^calls failed · demo \(h\d+\), by client.* 1 call failed with it/).waitFor(SOON);

  host = startDemoHost(probe.server.url);
  const there = await probe.open("/server/hosts?state=open");
  await demo(there, "registered").click(SOON);
  await there.getByRole("table", { name: "Connections of demo: 2" }).waitFor(SOON);
  const front = await probe.open("/server");
  await front.getByRole("link", { name: "on, 1 connected" }).waitFor(SOON);
  expect(await front.locator("body").innerText()).not.toContain(SECRET);
});

test("the trace tells of hosts in words, and never what a host proves itself with", async () => {
  const live = await probe.open("/trace?view=all&filter=group:hosts");
  await live.getByRole("row").filter({ hasText: "host registered" }).filter({ hasText: /with 5 tools/ }).first().waitFor(SOON);
  const log = await (await fetch(`${probe.server.url}/api/events.ndjson`)).text();
  expect(log).toContain('"method":"host.register"');
  expect([...new Set([...log.matchAll(/"instance":"([^"]*)"/g)].map(([, value]) => value))]).toEqual(["[redacted]"]);
  expect(log).not.toContain(SECRET);
});
