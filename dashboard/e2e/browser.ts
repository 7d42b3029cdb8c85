import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright";
import { CHROMIUM_ARGS } from "./chromium.ts";

/** The browser of the machine, kept from speaking to anybody but the tests. */
export function launch(): Promise<Browser> {
  const own = process.env["PROBE_CHROMIUM"];
  return chromium.launch({ args: CHROMIUM_ARGS, ...(own !== undefined && { executablePath: own }) });
}

/**
 * A view of a server's dashboard in a window of its own, once it shows its log.
 *
 * `complaints` collects what the page should never have: errors, and whatever the Content-Security-Policy stopped.
 */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("ERR_CONNECTION_REFUSED")) complaints.push(message.text());
  });
  await page.goto(url);
  await page.getByRole("status", { name: "Connection" }).getByText(/^(live|saved file)$/).waitFor();
  return { page, complaints };
}
