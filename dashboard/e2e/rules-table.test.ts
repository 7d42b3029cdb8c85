import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "./browser.ts";

// The table of the judge's rules on the site of the documents, with the script that filters it.

const ROOT = join(import.meta.dirname, "../..");
const SITE = "http://documents.test";

let browser: Browser;
let table: string;

beforeAll(async () => {
  browser = await launch();
  const print = "import rule_pages; print(rule_pages.site_table())";
  table = execFileSync(process.env["PROBE_PYTHON"] ?? "python", ["-c", print], { cwd: join(ROOT, "infra"), encoding: "utf8" });
});

afterAll(() => browser.close());

async function open(address: string, javaScriptEnabled = true): Promise<Page> {
  const context = await browser.newContext({ javaScriptEnabled });
  const page = await context.newPage();
  const script = readFileSync(join(ROOT, "docs/site/rules.js"), "utf8");
  await page.route(`${SITE}/**`, (route) => {
    const isScript = route.request().url().endsWith(".js");
    return route.fulfill({ contentType: isScript ? "text/javascript" : "text/html", body: isScript ? script : table });
  });
  await page.goto(`${SITE}/judge-rules/${address}`);
  return page;
}

/** The ids of the rows that are shown. */
function shown(page: Page): Promise<string[]> {
  return page.evaluate(() => [...document.querySelectorAll<HTMLElement>("tbody tr:not([hidden])")].map((row) => row.id));
}

function chooser(page: Page, name: string): Locator {
  return page.getByRole("combobox", { name, exact: true });
}

test("without a script every rule is shown, and no filter", async () => {
  const page = await open("", false);
  // page.evaluate needs no script of the page
  expect((await shown(page)).length).toBeGreaterThan(100);
  expect(await page.locator("form").count()).toBe(0);
});

test("words are searched in the id, the title and the fault, and each must be found", async () => {
  const page = await open("");
  const all = await shown(page);
  await page.getByLabel("Words").fill("PING empty");
  expect(await shown(page)).toEqual(["ping.empty"]);
  expect(await page.locator("output").textContent()).toBe(`1 of ${all.length} rules`);
  await page.getByLabel("Words").fill("two active requests have");
  expect(await shown(page)).toEqual(["progress.token-unique"]);
});

test("a level counts at the revision that is chosen", async () => {
  const page = await open("");
  await chooser(page, "Revision").selectOption("2026-07-28");
  const modern = await shown(page);
  expect(modern).not.toContain("ping.answered");
  await chooser(page, "Level").selectOption("must");
  const musts = await shown(page);
  expect(musts).toContain("progress.token-unique");
  expect(musts.length).toBeLessThan(modern.length);
});

test("transport and feature narrow, and the address keeps the filter", async () => {
  const page = await open("");
  await chooser(page, "Transport").selectOption("stdio");
  expect(await shown(page)).not.toContain("http.session-header");
  await chooser(page, "Feature").selectOption("Ping");
  const pings = await shown(page);
  expect(pings.every((id) => id.startsWith("ping."))).toBe(true);
  const again = await open(new URL(page.url()).search);
  expect(await shown(again)).toEqual(pings);
  expect(await chooser(again, "Transport").inputValue()).toBe("stdio");
});

test("the link to a rule by its anchor leads to the page of the rule", async () => {
  const page = await open("#cancel.own-request");
  await page.waitForURL(/\/$/);
  expect(page.url()).toBe(`${SITE}/judge-rules/cancel.own-request/`);
});
