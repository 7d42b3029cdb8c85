import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { render } from "vitest-browser-react";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { judgedRule, judgedSubject, judgeReport, serverThat } from "~/testing/reports";
import { callRow, countsRow, entryOf, rowsOf, sessionRow } from "~/testing/rows";
import { FakeFeed } from "~/testing/fake-source";
import { answerApi, openView } from "~/testing/view";
import type { Viewed } from "~/trace/entry";
import { FeedContext } from "~/trace/feed";
import { byEntry, type Finding, JudgedContext, JudgedProvider } from "~/trace/findings";
import { Page } from "~/ui/page";
import CallsView from "~/views/calls/calls-view";
import TraceView from "~/views/trace/trace-view";
import { App, News } from "./app";

// views ask the API for what the feed does not bring; here there is none
beforeEach(() => {
  vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(Response.json({ detail: "none" }, { status: 404 })));
});

async function opened(path: string) {
  history.replaceState(null, "", `/dashboard${path}`);
  const fake = new FakeFeed();
  await render(<App feed={fake.feed} />);
  return fake;
}

test.each([
  ["", "Clients"],
  ["/trace", "Trace"],
  ["/calls", "Calls"],
  ["/calls/tasks", "Tasks · Calls"],
  ["/calls/tasks/some-task", "Task"],
  ["/clients/acme", "acme"],
  ["/server", "Overview · Server"],
  ["/server/streams", "Streams · Server"],
  ["/server/hosts", "Tool hosts · Server"],
  ["/server/help", "Help · Server"],
  ["/elsewhere", "There is no such page"],
])("/dashboard%s shows %s, and so says the tab", async (path, title) => {
  await opened(path);
  await expect.element(page.getByRole("heading", { level: 1, name: title.split(" · ").at(-1) ?? "" })).toBeVisible();
  await expect.poll(() => document.title).toBe(`${title} · MCP Probe`);
});

test.each([
  ["/report/acme#ping.answered", "/clients/acme#ping.answered"],
  ["/sessions/s1?era=legacy", "/clients/s1?era=legacy"],
  ["/tasks/a%2Fb", "/calls/tasks/a%2Fb"],
  ["/hosts?state=closed", "/server/hosts?state=closed"],
  ["/help/progress", "/server/help/progress"],
  ["/help#progress", "/server/help#progress"],
  ["/live?session=s1&at=7", "/trace?session=s1&at=7"],
  ["/ladder?client=s1", "/trace?view=ladder&client=s1"],
  ["/timeline", "/trace"],
])("the old address %s leads to %s", async (from, to) => {
  await opened(from);
  await expect.poll(() => location.pathname + location.search + location.hash).toBe(`/dashboard${to}`);
});

test("the connection is shown", async () => {
  const fake = await opened("/trace");
  const pill = page.getByRole("status", { name: "Connection" });
  await expect.element(pill).toHaveTextContent("connecting");
  fake.source.hello("a");
  fake.frame();
  await expect.element(pill).toHaveTextContent("live");
});

test("the theme can be chosen and is remembered", async () => {
  await opened("/trace");
  const button = page.getByRole("button", { name: /^Theme/ });
  await expect.element(button).toHaveAccessibleName("Theme: system");
  await button.click();
  expect(document.documentElement.dataset["theme"]).toBe("light");
  await button.click();
  expect(document.documentElement.dataset["theme"]).toBe("dark");
  expect(localStorage.getItem("mcp-probe-theme")).toBe("dark");
  await button.click();
  expect(document.documentElement.dataset["theme"]).toBeUndefined();
});

test("where the views have no room in a line, a button shows them until one is chosen or Escape is pressed", async () => {
  await page.viewport(390, 844);
  await opened("/trace");
  const views = page.getByRole("navigation", { name: "Views" });
  await expect.element(page.getByRole("button", { name: "Trace" })).toBeVisible();
  await expect.element(views).not.toBeInTheDocument();
  await page.getByRole("button", { name: "Trace" }).click();
  // it covers a part of the view
  await expectAccessible(page.getByRole("banner").element());
  await userEvent.keyboard("{Escape}");
  await expect.element(views).not.toBeInTheDocument();
  await page.getByRole("button", { name: "Trace" }).click();
  await views.getByRole("link", { name: "Calls" }).click();
  await expect.element(page.getByRole("button", { name: "Calls" })).toBeVisible();
  await expect.element(views).not.toBeInTheDocument();
});

test("? shows the keys and Escape hides them", async () => {
  await opened("/trace");
  await userEvent.keyboard("?");
  await expect.element(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
  await expectAccessible();
  await userEvent.keyboard("{Escape}");
  await expect.element(page.getByRole("dialog", { name: "Keys" })).not.toBeInTheDocument();
});

test("the shell is accessible in light and dark", async () => {
  await opened("/trace");
  await expect.element(page.getByRole("heading", { level: 1 })).toBeVisible();
  await inBothThemes(() => expectAccessible());
});

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

const RECEIVED = { exchange: 4, rpc: "request", method: "tools/call", id: 5, message: {} };

/** Has the feed bring entries with the rows of their exchanges. */
function play(fake: FakeFeed, run: string, entries: readonly Viewed[]): void {
  fake.source.say("rows", { table: "exchanges", rows: rowsOf(entries) });
  for (const each of entries) fake.source.entry(run, each.seq, each);
  fake.frame();
}

function answer(broken = [judgedRule()]) {
  return answerApi((at) => {
    if (at === "/api/server") return serverThat(true);
    if (at === "/api/judge") return judgeReport([judgedSubject(broken)]);
    if (at === "/api/calls/run.c1") return { call: callRow(), evidence: { events: [entryOf(7, 0, "message.received", RECEIVED)], exchanges: [], complete: true } };
    return at === "/api/events/7" ? entryOf(7, 0, "message.received", RECEIVED) : undefined;
  });
}

test("a request that a finding rests on leads to it, and no other does", async () => {
  answer();
  const { fake, show } = await openView(TraceView, "/trace", "/trace", JudgedProvider);
  show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  play(fake, "run", [entryOf(7, 0, "message.received", RECEIVED), entryOf(8, 0, "message.received", { ...RECEIVED, method: "ping", exchange: 5 })]);
  const mark = page.getByRole("link", { name: "✗ ping.answered" });
  await expect.element(mark).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  expect(mark.elements().length).toBe(1);
  expect(mark.element().closest("[role=row]")?.textContent).toMatch(/tools\/call/);
});

test("an entry of an earlier run of the server, with the same number, is not marked", async () => {
  answer();
  const { fake, show } = await openView(TraceView, "/trace", "/trace", JudgedProvider);
  show({ sessions: [sessionRow()] }, "earlier");
  play(fake, "earlier", [entryOf(7, 0, "message.received", RECEIVED)]);
  show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  play(fake, "run", [entryOf(7, 0, "message.received", RECEIVED)]);
  await expect.element(page.getByRole("link", { name: "✗ ping.answered" })).toBeVisible();
  expect(page.getByRole("link", { name: "✗ ping.answered" }).elements().length).toBe(1);
});

const calls = [callRow(), callRow({ call: "c2", exchange: 9 })];

test("a call that a finding rests on leads to it in the list, and no other does", async () => {
  answer();
  const list = await openView(CallsView, "/calls/:id?", "/calls", JudgedProvider);
  list.show({ sessions: [sessionRow({ subject: "acme" })], calls, counts: [countsRow()] }, "run");
  const mark = page.getByRole("link", { name: "✗ ping.answered" });
  await expect.element(mark).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  expect(mark.elements().length).toBe(1);
});

/** How many elements of a part are cut. */
const cut = (part: Element) => [part, ...part.querySelectorAll("*")].filter(({ scrollWidth, clientWidth }) => clientWidth > 0 && scrollWidth > clientWidth).length;

test.each([820, 1280])("at %d pixels the list of calls has the longest name of a rule whole, and how many more there are", async (width) => {
  await page.viewport(width, 800);
  answer([judgedRule({ rule: "lifecycle.initialized-before-requests" }), judgedRule()]);
  const list = await openView(CallsView, "/calls/:id?", "/calls", JudgedProvider);
  list.show({ sessions: [sessionRow({ subject: "acme" })], calls, counts: [countsRow()] }, "run");
  const mark = page.getByRole("link", { name: "✗ lifecycle.initialized-before-requests" });
  await expect.element(mark).toBeVisible();
  await expect.poll(() => cut(mark.element().closest("[role=gridcell]") ?? document.body)).toBe(0);
  await expect.element(page.getByText("+1", { exact: true })).toHaveAttribute("title", "✗ ping.answered");
});

test("the page of a call that a finding rests on leads to it", async () => {
  answer();
  const { show } = await openView(CallsView, "/calls/:id?", "/calls/run.c1", JudgedProvider);
  show({ sessions: [sessionRow({ subject: "acme" })], calls, counts: [countsRow()] }, "run");
  await expect.element(page.getByRole("link", { name: "✗ ping.answered" })).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  await expect.element(page.getByRole("paragraph").filter({ hasText: "Findings of the judge on it" })).toBeVisible();
});
