import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { violations } from "./axe.ts";
import { launch, openPage } from "./browser.ts";
import { all, modernCall } from "./client.ts";
import { freePort, type Server, startServer } from "./server.ts";

const SOON = { timeout: 20_000 };

let server: Server;
let other: Server;
let browser: Browser;
/** What a file has in it that another server saved. */
let file: Buffer;

beforeAll(async () => {
  server = await startServer(await freePort());
  other = await startServer(await freePort());
  browser = await launch();
  await all(modernCall(other.url, "colleague", "progress", { steps: 3, step_ms: 0 }, { id: 1, token: 1 }));
  await all(modernCall(server.url, "mine", "simple_tool", { delayMs: 1 }, { id: 1 }));
  file = Buffer.from(await (await fetch(`${other.url}/api/export.mcpprobe`)).arrayBuffer());
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await other?.stop();
});

/** Drops a file on the page, as the browser does when a person lets go of one. */
function drop(page: Page, name: string, content: Buffer): Promise<void> {
  return page.evaluate(
    ([called, base64]) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.codePointAt(0) ?? 0);
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], called));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
    [name, content.toString("base64")] as const,
  );
}

const fileNotice = (page: Page) => page.getByRole("region", { name: "File", exact: true });

test("a dropped file is shown in all pages, and one click leads back to the live view as it was", async () => {
  const live = `${server.url}/dashboard/trace?filter=tool%3Asimple_tool`;
  const { page, complaints } = await openPage(browser, live);
  await page.getByRole("row").filter({ hasText: "mine" }).first().waitFor(SOON);
  await drop(page, "theirs.mcpprobe", file);
  await fileNotice(page).getByText("theirs.mcpprobe").waitFor(SOON);
  await page.getByRole("row").filter({ hasText: "colleague" }).first().waitFor(SOON);
  expect(await violations(page)).toEqual([]);
  // nothing comes to a file, so there is nothing to follow and nothing to hold
  await page.getByRole("status", { name: "Connection" }).getByText("saved file").waitFor(SOON);
  expect(await page.getByRole("button", { name: /^(Follow|Pause|Clear view)$/ }).count()).toBe(0);
  const sections = [
    ["Calls", "progress"],
    ["Clients", "colleague"],
    ["Trace", "tools/call"],
    ["Server", "Toolsets"],
    ["Streams", "Streams"],
    ["Tool hosts", "Tool hosts"],
    ["Gateway", "Does your gateway change the protocol?"],
    ["Trace", "tools/call"],
  ] as const;
  for (const [section, shown] of sections) {
    await page.getByRole("navigation").getByRole("link", { name: section, exact: true }).click();
    await page.locator("main").getByText(shown).filter({ visible: true }).first().waitFor(SOON);
    const text = await page.locator("body").innerText();
    expect(text.replace("Back to live", "").split("\n").filter((line) => /\blive\b/i.test(line))).toEqual([]);
  }
  // the address of a page of the file can be loaded again
  await page.reload();
  await fileNotice(page).getByText("theirs.mcpprobe").waitFor(SOON);
  await page.getByRole("link", { name: "Back to live" }).click();
  await page.waitForURL(live);
  await page.getByRole("row").filter({ hasText: "mine" }).first().waitFor(SOON);
  expect(await page.getByText("colleague").count()).toBe(0);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("a bad file is named in one line, and the live view goes on", async () => {
  const { page, complaints } = await openPage(browser, `${server.url}/dashboard/trace`);
  await page.getByRole("row").filter({ hasText: "mine" }).first().waitFor(SOON);
  await drop(page, "cut.mcpprobe", file.subarray(0, file.length - 40));
  await page.getByRole("alert").getByText("cut.mcpprobe cannot be opened: it is cut off").waitFor(SOON);
  expect(await violations(page)).toEqual([]);
  await all(modernCall(server.url, "later", "simple_tool", { delayMs: 1 }, { id: 2 }));
  await page.getByRole("row").filter({ hasText: "later" }).first().waitFor(SOON);
  // the browser writes a line of its own for each answer that is a refusal
  expect(complaints.filter((each) => !each.includes("422"))).toEqual([]);
  await page.context().close();
});

test("those who do not drag choose a file with a button", async () => {
  const { page } = await openPage(browser, `${server.url}/dashboard/export`);
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Open a session file" }).click();
  await (await choosing).setFiles({ name: "chosen.mcpprobe", mimeType: "", buffer: file });
  await fileNotice(page).getByText("chosen.mcpprobe").waitFor(SOON);
  expect(new URL(page.url()).pathname).toMatch(/^\/opened\/\d+\/dashboard\/trace$/);
  await page.context().close();
});
