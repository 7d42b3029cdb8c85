import axe from "axe-core";
import { expect } from "vitest";

/** Fails with what axe-core finds against WCAG 2.2 AA in the page, contrast included. */
export async function expectAccessible(root: Element = document.body): Promise<void> {
  const { violations } = await axe.run(root, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    // a component on its own is no page with landmarks
    rules: { region: { enabled: false }, "page-has-heading-one": { enabled: false } },
  });
  expect(violations.map((each) => `${each.id}: ${each.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`)).toEqual([]);
}

/** Runs a check in light and in dark. */
export async function inBothThemes(check: () => Promise<void>): Promise<void> {
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset["theme"] = theme;
    await check();
  }
  delete document.documentElement.dataset["theme"];
}
