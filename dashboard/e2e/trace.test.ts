import { beforeAll, expect, test } from "vitest";
import { LegacyClient, all, modernCall } from "./client.ts";
import { visiting } from "./visiting.ts";

const SOON = { timeout: 20_000 };

const probe = visiting();

beforeAll(async () => {
  const wrong = await new LegacyClient(probe.server.url).open("wrong-agent");
  // the same mistake thirty times: an id that was used before, each message another one
  for (let number = 0; number <= 30; number += 1) await wrong.ask(7, "ping", { _meta: { number } });
  // more entries than a page begins with
  for (let call = 0; call < 3; call += 1) await all(modernCall(probe.server.url, "busy-agent", "progress", { steps: 100, step_ms: 0 }, { id: call, token: call }));
});

test("equal mistakes that the page has not loaded are counted and found in the log, as one line that unfolds", async () => {
  const page = await probe.open("/trace");
  await page.getByRole("button", { name: "client mistakes 30" }).click();
  await page.getByText(/^30 requests shown\. 30 of the \d+ requests in the log match$/).waitFor(SOON);
  const line = page.getByRole("row").filter({ hasText: "× 30" });
  await line.filter({ hasText: "id used before" }).waitFor(SOON);
  await line.getByRole("button", { name: "Unfold" }).click();
  await expect.poll(() => page.getByRole("row").filter({ hasText: "ping" }).count(), SOON).toBeGreaterThan(10);
  expect(new URL(page.url()).searchParams.get("filter")).toBe("problem:mistake");
});

test("words that are typed and completed filter, and what nothing in the log has is said", async () => {
  const page = await probe.open("/trace");
  const line = page.getByRole("combobox", { name: "Filter" });
  await line.waitFor(SOON);
  // the key works from the moment when the page listens, which is after it is seen
  await expect.poll(async () => {
    await page.keyboard.press("/");
    return line.evaluate((field) => field === document.activeElement);
  }, SOON).toBe(true);
  await page.keyboard.type("client:busy");
  await page.getByRole("option", { name: /^client:m1 busy-agent/ }).waitFor(SOON);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByText(/^3 requests shown\. 3 of the \d+ requests in the log match$/).waitFor(SOON);
  await page.keyboard.type("outcome:cancelled");
  // Escape closes the list, but clears a line that has none
  await page.getByRole("option").first().waitFor(SOON);
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: /^None of the \d+ requests in the log passes the filter$/ }).waitFor(SOON);
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await page.getByText(/requests shown; the log has/).waitFor(SOON);
});

test("the back button closes what was opened, and leads to nowhere else", async () => {
  const page = await probe.open("/trace");
  await page.getByRole("row").filter({ hasText: "busy-agent" }).first().click();
  await page.getByRole("complementary").getByText('"progressToken"').waitFor(SOON);
  await page.goBack();
  await expect.poll(() => page.getByRole("complementary").count(), SOON).toBe(0);
  expect(new URL(page.url()).pathname).toBe("/dashboard/trace");
});
