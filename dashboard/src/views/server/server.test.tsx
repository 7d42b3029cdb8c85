import type { ComponentType } from "react";
import { expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { streamRow } from "~/testing/rows";
import { useServer } from "~/protocol/client";
import { answerApi, openView } from "~/testing/view";
import { useFeed } from "~/trace/feed";
import LimitsView from "./limits-view";
import ServerView from "./server-view";
import StreamsView from "./streams-view";

const limit = (name: string, value: number, used: number | null) => ({ name, value, used, unit: "sessions", reason: `why ${name}` });

const SERVER = {
  name: "MCP Probe", version: "1.2.3", run: "abc", started_at: 1_795_258_465, uptime_s: 61, state: "ready", mcp: "http://probe.example/mcp",
  revisions: ["2025-11-25", "2026-07-28"], toolsets: [{ name: "probe", default: true, tools: ["simple_tool"] }, { name: "conformance", default: false, tools: [] }],
  settings: [{ name: "public_url", value: "", unit: "URL", reason: "where" }],
  limits: [limit("max_results", 10, null), limit("max_sessions", 1000, 1000), limit("max_tasks", 100, 25)],
  log: { first: 5, last: 104, entries: 100, bytes: 123_456 }, feed: [{ since: 1_795_258_465, position: 104, behind: 3 }],
  audit: { store: "file", state: "failing", since: 1_795_258_465, why: "No space left on device", lost: 2 },
  tool_hosts: { enabled: true, connected: 2 },
};

async function opened(view: ComponentType = ServerView, server: object = SERVER) {
  answerApi((path) => (path === "/api/server" ? server : undefined));
  return openView(view, "/server", "/server");
}

async function streams() {
  const view = await opened(StreamsView);
  const away = { connected: false, reader: null, ended_at: 2 };
  const rows = [
    streamRow(),
    streamRow({ stream: "p2", status: "completed", closed_by: "client", ...away }),
    streamRow({ stream: "p3", purpose: "resumable", connection: "w5", reader: 5, resumed: 2 }),
    streamRow({ stream: "p4", purpose: "resumable", status: "completed", closed_by: "client", ...away }),
    streamRow({ stream: "g1", purpose: "standalone", status: "completed", closed_by: null, ...away }),
    streamRow({ stream: "p5", purpose: "resumable", status: "lost", lost: "session_ended", waiting: 0, closed_by: "client", ...away }),
  ];
  view.show({ streams: rows }, "abc");
}

test("a dashboard counts itself: the server is asked again as soon as the feed is there", async () => {
  // or the next answer would come by itself after two seconds
  vi.spyOn(globalThis, "setInterval").mockReturnValue(0 as never);
  let { feed } = { ...SERVER, feed: [] as typeof SERVER.feed };
  answerApi((path) => (path === "/api/server" ? { ...SERVER, feed } : undefined));
  const view = await openView(ServerView, "/server", "/server");
  await expect.element(page.getByRole("region", { name: "Observation" })).toMatchTextContent(/Dashboards open0/);
  ({ feed } = SERVER);
  view.show({}, "abc");
  await expect.element(page.getByRole("table", { name: "Open dashboards" })).toMatchTextContent(/Sent up to entryStill to send.*1043/);
});

test("a dashboard that has asked the server before its feed was there counts itself, too", async () => {
  vi.spyOn(globalThis, "setInterval").mockReturnValue(0 as never);
  let { feed } = { ...SERVER, feed: [] as typeof SERVER.feed };
  answerApi((path) => (path === "/api/server" ? { ...SERVER, feed } : undefined));
  const view = await openView(
    () => {
      const known = useServer().data !== undefined;
      const connected = useFeed(({ hello }) => hello !== null);
      return connected ? <ServerView /> : known ? "asked" : null;
    },
    "/server",
    "/server",
  );
  await expect.element(page.getByText("asked")).toBeVisible();
  ({ feed } = SERVER);
  view.show({}, "abc");
  await expect.element(page.getByRole("region", { name: "Observation" })).toMatchTextContent(/Dashboards open1/);
});

test("what is used of a limit is a bar and a number; a full one says so", async () => {
  await opened(LimitsView);
  await expect.element(page.getByRole("meter", { name: "max_tasks in use" })).toHaveAttribute("aria-valuetext", "25 of 100");
  await expect.element(page.getByRole("row", { name: /max_sessions .*1,000, full 1,000 sessions: why/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /max_results per client or request 10/ })).toBeInTheDocument();
});

test("what the log holds, who reads it, and what the audit lost", async () => {
  await opened();
  await expect.element(page.getByText("100 entries, 5 to 104")).toBeVisible();
  await expect.element(page.getByText("No space left on device")).toBeVisible();
  await expect.element(page.getByText("2 rows lost")).toBeVisible();
  await expect.element(page.getByText("http://probe.example/mcp", { exact: true })).toBeVisible();
});

test("whether tool hosts are on, and how many are connected", async () => {
  await opened();
  await expect.element(page.getByRole("link", { name: "on, 2 connected" })).toHaveAttribute("href", "/dashboard/server/hosts");
});

test("where tool hosts are off it says how to turn them on", async () => {
  await opened(ServerView, { ...SERVER, tool_hosts: { enabled: false, connected: 0 } });
  await expect.element(page.getByText("off: start with --toolhost-secret")).toBeVisible();
});

test("a server on standard streams has no address, and other tools are for who starts it", async () => {
  await opened(ServerView, { ...SERVER, mcp: null });
  await expect.element(page.getByText("none: this server speaks MCP on its standard input and output")).toBeVisible();
  await expect.element(page.getByText("When started with --tools NAME: conformance (0 tools)")).toBeVisible();
  expect(document.body.textContent).not.toMatch(/\/mcp/);
});

test.each([true, false])("a room says when it ends, and leads its owner (%s) to its page", async (is_owner) => {
  const id = `Hb3Qit2o/${"x".repeat(40)}`;
  const server = { ...SERVER, mcp: `http://probe.example/r/${id}/mcp` };
  const room = { expires_at: 1_795_265_665, is_owner };
  answerApi((path) => ({ "/api/server": server, "/api/room": room })[path]);
  await openView(ServerView, "/server", "/server");
  await expect.element(page.getByText("Ends without use")).toBeVisible();
  await expect.element(page.getByTitle("2026-11-21T12:54:25.000Z")).toBeVisible();
  await expect.element(page.getByRole("link", { name: "make another room" })).toHaveAttribute("href", "/../../../new");
  expect(page.getByRole("link", { name: "all addresses, and the button that ends it" }).elements()).toHaveLength(is_owner ? 1 : 0);
});

test("what is no room asks for none", async () => {
  const asked = answerApi((path) => (path === "/api/server" ? SERVER : undefined));
  await openView(ServerView, "/server", "/server");
  await expect.element(page.getByText("100 entries, 5 to 104")).toBeVisible();
  expect(asked.filter((path) => path.includes("room"))).toEqual([]);
});

test("a file has no address, and is no server on standard streams", async () => {
  await opened(ServerView, { ...SERVER, mcp: null, file: { name: "a.mcpprobe" } });
  await expect.element(page.getByText("none: this is a file")).toBeVisible();
});

test("open streams are listed, all of them on demand, with who reads them and what was received", async () => {
  await streams();
  await expect.element(page.getByRole("row", { name: /s1\/p1 response open request #1 7 5 2 0/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /s1\/p2/ })).not.toBeInTheDocument();
  await page.getByRole("radio", { name: "All" }).click({ force: true });
  await expect.element(page.getByRole("row", { name: /s1\/p2 response completed client disconnected 7 5/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /s1\/g1 standalone completed none 7 5/ })).toBeInTheDocument();
});

test("a draft stream shows who reads it, and stays while it waits for its client; a lost one says why", async () => {
  await streams();
  await expect.element(page.getByRole("row", { name: /s1\/p3 resumable open w5 7 5 2 2/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /s1\/p4 resumable completed client disconnected 7 5 2/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /s1\/p5/ })).not.toBeInTheDocument();
  await page.getByRole("radio", { name: "All" }).click({ force: true });
  await expect.element(page.getByRole("row", { name: /s1\/p5 resumable lost: session ended client disconnected 7 5 0/ })).toBeInTheDocument();
});

test("a stream that goes on without a reader is not called open, and says what became of the reader and when", async () => {
  const view = await opened(StreamsView);
  view.show({ streams: [streamRow({ connected: false, reader: null, closed_by: "client", left_at: Date.now() / 1000 - 360 })] }, "abc");
  await expect.element(page.getByRole("row", { name: /s1\/p1 response no reader client disconnected 6 min ago/ })).toBeInTheDocument();
});

test("a server that does not answer is said to be so", async () => {
  answerApi(() => undefined);
  await openView(ServerView, "/server", "/server");
  await expect.element(page.getByText("The server does not answer")).toBeVisible();
});

test.each([
  [ServerView, "Protocol"],
  [StreamsView, "Streams"],
  [LimitsView, "Settings"],
])("each part is accessible in light and dark", async (view, heading) => {
  await opened(view);
  await expect.element(page.getByRole("heading", { name: heading })).toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
});
