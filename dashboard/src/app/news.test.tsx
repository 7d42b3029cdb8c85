import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { render } from "vitest-browser-react";
import { FakeFeed } from "~/testing/fake-source";
import { judgedRule } from "~/testing/judged";
import { type Finding, byEntry } from "~/trace/findings";
import { FeedContext } from "~/trace/use-feed";
import { JudgedContext } from "~/trace/use-judged";
import { Page } from "~/ui/page";
import { News } from "./news";

const finding = (rule: string): Finding => ({ client: "acme", rule: judgedRule({ rule }) });

function tree(findings: readonly Finding[]) {
  const judged = { state: "on" as const, run: "run", subjects: [], answered: true, findings, byEntry: byEntry(findings), error: null };
  return (
    <QueryClientProvider client={new QueryClient()}>
      <FeedContext value={new FakeFeed().feed}>
        <JudgedContext value={judged}>
          <News>
            <Page title="Calls">text</Page>
          </News>
        </JudgedContext>
      </FeedContext>
    </QueryClientProvider>
  );
}

function look(hidden: boolean) {
  vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

const icon = document.createElement("link");

beforeEach(() => {
  icon.rel = "icon";
  icon.href = "/icon.svg";
  document.head.prepend(icon);
});
afterEach(() => {
  icon.remove();
  vi.restoreAllMocks();
});

test("findings that come while the tab is hidden are counted in its title and its icon until it is looked at", async () => {
  const screen = await render(tree([finding("a.known")]));
  await expect.poll(() => document.title).toBe("Calls · MCP Probe");
  look(true);
  await screen.rerender(tree([finding("a.known"), finding("a.new"), finding("b.new")]));
  await expect.poll(() => document.title).toBe("(2) Calls · MCP Probe");
  expect(decodeURIComponent(icon.href)).toMatch(/^data:image\/svg\+xml,<svg .*>2<\/text><\/svg>/s);
  look(false);
  await expect.poll(() => document.title).toBe("Calls · MCP Probe");
  expect(icon.href).not.toMatch(/^data:image.svg.xml,.*text/s);
});

test("what comes while the tab is looked at is no news", async () => {
  const screen = await render(tree([]));
  await screen.rerender(tree([finding("a.new")]));
  await expect.poll(() => document.title).toBe("Calls · MCP Probe");
  look(true);
  expect(document.title).toBe("Calls · MCP Probe");
  expect(icon.href).not.toMatch(/text/);
});
