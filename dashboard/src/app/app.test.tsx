import { beforeEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import { render } from "vitest-browser-react";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { FakeFeed } from "~/testing/fake-source";
import { App } from "./app";

// views ask the API for what the feed does not bring; here there is none
beforeEach(() => {
  vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(Response.json({ detail: "none" }, { status: 404 })));
  return () => vi.restoreAllMocks();
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
  await page.viewport(1280, 800);
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
