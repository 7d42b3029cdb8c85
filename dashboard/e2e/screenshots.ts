/** Takes the pictures of docs/images: `node e2e/screenshots.ts DIRECTORY`. Needs the built pages and `PROBE_PYTHON`. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { launch, openPage } from "./browser.ts";
import { startLateProxy } from "./late-proxy.ts";
import { withPalette } from "./palette.ts";
import { tell } from "./rich-story.ts";
import { checkGateway, freePort, startServer } from "./server.ts";

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
    await page.evaluate("document.fonts.ready");
    await page.mouse.move(0, 0);
    await writeFile(`${folder}/${name}-${colorScheme}.png`, withPalette(await page.screenshot()));
    if (complaints.length > 0) throw new Error(`${name}: ${complaints.join("; ")}`);
    await page.context().close();
  }
}

const row = (...texts: readonly string[]) => (page: Page) =>
  texts.reduce((rows, hasText) => rows.filter({ hasText }), page.getByRole("row")).first().waitFor();
const text = (shown: string | RegExp) => (page: Page) => page.getByText(shown).filter({ visible: true }).first().waitFor();

/** What the page of a run shows, opened from its file; the run is real, and takes most of the time here. */
async function gatewayPicture(url: string, home: string): Promise<Picture> {
  const gateway = await startLateProxy(url, 200);
  const file = join(home, "run.json");
  await checkGateway(url, gateway.url, file, "stream.late", "progress.dropped", "close.lost", "headers.lost", "errors.tool", "ids.changed");
  gateway.stop();
  const ready = async (page: Page) => {
    await page.getByLabel("Open a result file").setInputFiles(file);
    await text("The gateway breaks")(page);
  };
  return { name: "gateway", path: "/gateway", ready };
}

await mkdir(folder, { recursive: true });
const home = await mkdtemp(join(tmpdir(), "mcp-probe-"));
const server = await startServer(await freePort());
const browser = await launch();
try {
  const story = await tell(server.url);
  const { cancelled, session } = story;
  const pictures: readonly Picture[] = [
    { name: "clients", path: "/clients", ready: text(/^Breaks/) },
    { name: "trace", path: "/trace", ready: row("tools/call") },
    { name: "call", path: `/calls/${cancelled}`, ready: text("call settled") },
    { name: "ladder", path: `/trace?view=ladder&filter=client:${session}`, ready: (page) => page.getByRole("option", { name: /work stopped/ }).last().waitFor() },
    { name: "report", path: "/clients/s2", ready: text("Expected") },
  ];
  for (const picture of pictures) await take(browser, server.url, picture);
  await story.end();
  await take(browser, server.url, await gatewayPicture(server.url, home));
} finally {
  await browser.close();
  await server.stop();
  await rm(home, { recursive: true, force: true });
}
