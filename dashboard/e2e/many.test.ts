import type { Page } from "playwright";
import { expect, test } from "vitest";
import { all, modernCall } from "./client.ts";
import { visiting } from "./visiting.ts";

const probe = visiting();

/** From an action in the page until the frame after the next one is painted, in ms; the median of some. */
function timed(page: Page, action: string): Promise<number> {
  return page.evaluate(async (body) => {
    const act = new Function("turn", body) as (turn: number) => void;
    // it runs in the page, where nothing of this file is
    // oxlint-disable-next-line unicorn/consistent-function-scoping
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const taken: number[] = [];
    for (let turn = 0; turn < 9; turn += 1) {
      await frame();
      const start = performance.now();
      act(turn);
      await frame();
      taken.push(performance.now() - start);
    }
    return taken.toSorted((a, b) => a - b)[4] ?? 0;
  }, action);
}

test("ten thousand entries stay responsive", async () => {
  const page = await probe.open("/trace?view=all&order=newest&deliveries=rows");
  const burst = (client: number) =>
    all(modernCall(probe.server.url, `busy-${client % 5}`, "progress", { steps: 100, step_ms: 0 }, { id: client, token: client }));
  const entries = async () => {
    const said = /([\d,]+) entries shown/.exec(await page.locator("main").innerText());
    return Number(said?.[1]?.replaceAll(",", "") ?? 0);
  };
  for (let round = 0; round < 16; round += 1) await Promise.all(Array.from({ length: 5 }, (_, at) => burst(round * 5 + at)));
  await expect.poll(entries, { timeout: 40_000 }).toBeGreaterThan(9_900);
  const shown = await entries();
  const scroll = await timed(page, `document.querySelector("[role=grid]").scrollTo({ top: turn * 20000 })`);
  const filter = await timed(page, `[...document.querySelectorAll("button")].find((each) => each.textContent.startsWith("HTTP")).click()`);
  // oxlint-disable-next-line no-console
  console.log(`${shown} entries: a scroll takes ${scroll.toFixed(1)} ms, a filter ${filter.toFixed(1)} ms (aim 100)`);
  expect(await page.getByRole("row").count()).toBeLessThan(120);
  // a page that hangs: a machine that runs the whole check takes a second
  expect(Math.max(scroll, filter)).toBeLessThan(10_000);
});
