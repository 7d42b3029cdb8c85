import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { LegacyClient, all, modernCall } from "./client.ts";
import { visiting } from "./visiting.ts";

// a machine that runs all tests at once may take long for what usually takes a moment
const SOON = { timeout: 20_000 };

const probe = visiting();

test("the ladder follows a client to the cancellation of its call, leads to the entry, and can be saved and printed", async () => {
  const client = await new LegacyClient(probe.server.url).open("ladder-agent");
  const page = await probe.open("/trace?view=ladder&filter=client:s1", { colorScheme: "dark", acceptDownloads: true });
  const row = (name: RegExp) => page.getByRole("option", { name });
  await row(/initialize request · id "initialize" · ladder-agent 1\.0/).waitFor(SOON);
  let heard = 0;
  for await (const message of client.request(7, "tools/call", { name: "progress", arguments: { steps: 50, step_ms: 50 }, _meta: { progressToken: 0 } })) {
    heard += Number(message["method"] === "notifications/progress");
    if (message["method"] === "notifications/progress" && heard === 4) await client.notify("notifications/cancelled", { requestId: 7, reason: "enough" });
  }
  await row(/from s1 ladder-agent 1\.0 to MCP Probe: notifications\/cancelled · request 7 · "enough"/).waitFor(SOON);
  await row(/at MCP Probe: work stopped · .*nothing sent afterwards/).waitFor(SOON);
  await row(/tools\/call request · id 7 .* · no answer, as the cancellation asks/).click();
  await page.getByRole("complementary").getByText('"progressToken"').waitFor(SOON);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save SVG" }).click()]);
  expect(download.suggestedFilename()).toBe("ladder-s1.svg");
  expect(await readFile((await download.path()) ?? "", "utf8")).toMatch(/^<svg [^]*<title>Ladder of s1<\/title>[^]*notifications\/cancelled[^]*work stopped/);
  const paper = await page.pdf({ format: "A4" });
  expect(paper.subarray(0, 5).toString()).toBe("%PDF-");
});

test("the ladder of a client with thousands of messages is drawn in parts, and on a phone it is never wider than the screen", async () => {
  for (let round = 0; round < 8; round += 1) {
    await Promise.all(Array.from({ length: 5 }, (_, at) => all(modernCall(probe.server.url, "busy", "progress", { steps: 100, step_ms: 0 }, { id: round * 5 + at, token: round * 5 + at }))));
  }
  const page = await probe.open("/ladder?client=m1", { viewport: { width: 390, height: 844 } });
  await page.getByRole("option", { name: /tools\/call response/ }).last().waitFor(SOON);
  expect(await page.getByRole("option").count()).toBeLessThan(100);
  const [wide, shown] = (await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")) as [number, number];
  expect(wide).toBeLessThanOrEqual(shown);
  // older messages come in parts, and each of them moves the beginning
  const first = page.getByRole("option", { name: /tools\/call request · id 0 / }).first();
  await expect.poll(() => page.getByRole("listbox").press("Home").then(() => first.isVisible()), SOON).toBe(true);
});
