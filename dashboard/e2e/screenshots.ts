/** Takes the pictures of docs/images: `node e2e/screenshots.ts DIRECTORY`. Needs the built pages and `PROBE_PYTHON`. */
import { mkdir, writeFile } from "node:fs/promises";
import type { Browser, Page } from "playwright";
import { launch, openPage } from "./browser.ts";
import { withPalette } from "./palette.ts";
import { tell } from "./rich-story.ts";
import { freePort, startServer } from "./server.ts";

const folder = process.argv[2] ?? "../docs/images";

interface Picture {
  name: string;
  path: string;
  /** What is on the page when it is complete. */
  ready: (page: Page) => Promise<unknown>;
}

async function take(browser: Browser, url: string, { name, path, ready }: Picture): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, complaints } = await openPage(browser, `${url}/dashboard${path}`, { colorScheme, reducedMotion: "reduce", timezoneId: "UTC" });
    await ready(page);
    await page.mouse.move(0, 0);
    await writeFile(`${folder}/${name}-${colorScheme}.png`, withPalette(await page.screenshot()));
    if (complaints.length > 0) throw new Error(`${name}: ${complaints.join("; ")}`);
    await page.context().close();
  }
}

const row = (...texts: readonly string[]) => (page: Page) =>
  texts.reduce((rows, hasText) => rows.filter({ hasText }), page.getByRole("row")).first().waitFor();
const text = (shown: string | RegExp) => (page: Page) => page.getByText(shown).filter({ visible: true }).first().waitFor();

await mkdir(folder, { recursive: true });
const server = await startServer(await freePort());
const browser = await launch();
try {
  await take(browser, server.url, { name: "empty", path: "/live", ready: text("No client has connected since the server started") });
  const story = await tell(server.url);
  const { cancelled, closed, event, task, session } = story;
  const pictures: readonly Picture[] = [
    { name: "live", path: "/live", ready: row("tools/call") },
    { name: "live-entry", path: `/live?at=${event}`, ready: text(/^Answer #/) },
    { name: "timeline", path: "/timeline?show=call&span=30", ready: text("cancelled by notification") },
    { name: "tasks", path: "/tasks", ready: row("task_with_progress", "working") },
    { name: "task", path: `/tasks/${task}`, ready: text("Timeline") },
    { name: "calls", path: "/calls", ready: row("progress", "running") },
    { name: "call", path: `/calls/${cancelled}`, ready: text("call.settled") },
    { name: "ladder", path: `/ladder?client=${session}`, ready: (page) => page.getByRole("option", { name: /work stopped/ }).last().waitFor() },
    { name: "compare", path: `/calls/compare?a=${cancelled}&b=${closed}`, ready: text("no such message") },
    { name: "sessions", path: "/sessions", ready: row("no session") },
    { name: "session", path: `/sessions/${session}`, ready: text(/^Exercised: \d+ of/) },
    { name: "server", path: "/server", ready: text("Revisions") },
    { name: "help", path: "/help/progress", ready: text("A good client shows") },
  ];
  for (const picture of pictures) await take(browser, server.url, picture);
  await story.end();
} finally {
  await browser.close();
  await server.stop();
}
