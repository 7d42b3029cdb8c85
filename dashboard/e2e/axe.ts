import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright";

const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds in the page, by some of its rules or by all. Its source is run from outside, as the Content-Security-Policy lets nothing else in. */
export async function violations(page: Page, ...rules: string[]): Promise<string[]> {
  await page.evaluate(source);
  const { violations: found } = await page.evaluate<AxeResults>(`axe.run({ resultTypes: ["violations"]${rules.length > 0 ? `, runOnly: ${JSON.stringify(rules)}` : ""} })`);
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}
