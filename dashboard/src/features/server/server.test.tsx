import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { answerApi, openView } from "~/testing/view";
import ServerView from "./view";

const limit = (name: string, value: number, used: number | null) => ({ name, value, used, unit: "sessions", reason: `why ${name}` });

const SERVER = {
  name: "MCP Probe", version: "1.2.3", run: "abc", started_at: 1_795_258_465, uptime_s: 61, state: "ready", mcp: "http://probe.example/mcp",
  revisions: ["2025-11-25", "2026-07-28"], toolsets: [{ name: "probe", default: true, tools: ["simple_tool"] }, { name: "conformance", default: false, tools: [] }],
  settings: [{ name: "public_url", value: "", unit: "URL", reason: "where" }],
  limits: [limit("max_results", 10, null), limit("max_sessions", 1000, 1000), limit("max_tasks", 100, 25)],
  log: { first: 5, last: 104, entries: 100, bytes: 123_456 }, feed: [{ since: 1_795_258_465, position: 104, behind: 3 }],
  audit: { store: "file", state: "failing", since: 1_795_258_465, why: "No space left on device", lost: 2 },
};

const stream = (id: string, more: object) => ({ id, session: id.split("/")[0], stream: id.split("/")[1], purpose: "response", exchange: 1, opened_at: 1, messages: 7, delivered: 5, connected: true, ended_at: null, closed_by: null, ...more });

async function opened() {
  answerApi((path) => (path === "/api/server" ? SERVER : undefined));
  const view = await openView(ServerView, "/server", "/server");
  view.show({ streams: [stream("s1/p1", {}), stream("s1/p2", { ended_at: 2, connected: false, closed_by: "client" })] }, "abc");
  return view;
}

beforeEach(() => page.viewport(1280, 800));
afterEach(() => vi.restoreAllMocks());

test("what is used of a limit is a bar and a number; a full one says so", async () => {
  await opened();
  await expect.element(page.getByRole("meter", { name: "max_tasks in use" })).toHaveAttribute("aria-valuetext", "25 of 100");
  await expect.element(page.getByRole("row", { name: /max_sessions .*1,000, full 1,000 sessions why/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /max_results per client or request 10/ })).toBeInTheDocument();
});

test("what the log holds, who reads it, and what the audit lost", async () => {
  await opened();
  await expect.element(page.getByText("100 entries, 5 to 104")).toBeVisible();
  await expect.element(page.getByText("No space left on device")).toBeVisible();
  await expect.element(page.getByText("2 rows lost")).toBeVisible();
  await expect.element(page.getByText("http://probe.example/mcp", { exact: true })).toBeVisible();
});

test("open streams are listed, all of them on demand, emitted apart from delivered", async () => {
  await opened();
  await expect.element(page.getByRole("row", { name: /s1\/p1 response .* 7 5 connected not yet/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /s1\/p2/ })).not.toBeInTheDocument();
  await page.getByRole("radio", { name: "All" }).click({ force: true });
  await expect.element(page.getByRole("row", { name: /s1\/p2 response .* closed by client/ })).toBeInTheDocument();
});

test("a server that gives no answer is said to give none", async () => {
  answerApi(() => undefined);
  await openView(ServerView, "/server", "/server");
  await expect.element(page.getByText("The server gives no answer")).toBeVisible();
});

test("it is accessible in light and dark", async () => {
  await opened();
  const heading = page.getByRole("heading", { name: "Limits" });
  await expect.element(heading).toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
});
