import { expect, test } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { entryOf, hostRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import HostsView from "./hosts-view";

const OF_HOST = [
  entryOf(21, 900, "dispatch.stopped", { connection: "h3", host: "demo", dispatch: "d7", call: "c7", how: "acknowledged", after_ms: 12, late: 0 }),
  entryOf(20, 0, "host.message", { connection: "h3", direction: "sent", call: "c7", rpc: "request", method: "tool.dispatch", id: "d7", message: {} }),
  entryOf(10, 0, "host.registered", { connection: "h3", host: "demo", version: "1.4.0", library: null, tools: ["demo__slow"], replaced: "h1" }),
];

const ROWS = [
  hostRow({ id: "h1", opened_at: 10, last_at: 20, state: "closed", closed: "replaced by a newer connection of this host", code: 1008, in_flight: 0 }),
  hostRow({ id: "h2", opened_at: 30, name: null, version: null, library: null, state: "connected", tools: [] }),
  hostRow({ id: "h3", opened_at: 1_795_258_460, last_at: 1_795_258_500, state: "closed", closed: "client", code: 1006, replaced: "h1", late: 3, in_flight: 0 }),
  hostRow({ id: "h9", opened_at: 1_795_259_000, name: "other", tools: ["other__ping"] }),
];

async function opened(path = "") {
  const asked = answerApi((at, query) => {
    if (at !== "/api/events") return undefined;
    return { run: "r", gap: null, last: 99, next: null, events: ["h2", "h3"].includes(query.get("connection") ?? "") ? OF_HOST : [] };
  });
  const view = await openView(HostsView, "/server/hosts/:id?", `/server/hosts${path}`);
  view.show({ hosts: ROWS }, "run");
  return { ...view, asked };
}

test("connections are listed, the newest first, with what they do and why they ended", async () => {
  await opened();
  await expect.element(page.getByRole("row", { name: /demo 1\.4\.0 closed: client 1006 h3 2 .* 0 7 1 2 3 late 0/ })).toBeVisible();
  await expect.element(page.getByRole("row", { name: /not registered connected h2 0/ })).toBeVisible();
  await expect.element(page.getByRole("row", { name: /other 1\.4\.0 registered h9 1 .* 1 7 1 2 0 0/ })).toBeVisible();
  expect(page.getByRole("row").elements().slice(1).map((row) => /h\d/.exec(row.textContent ?? "")?.[0])).toEqual(["h9", "h3", "h2", "h1"]);
});

test("state and text filter, tools included, and the address says so", async () => {
  await opened();
  await page.getByRole("radio", { name: "Connected" }).click({ force: true });
  await expect.element(page.getByRole("row", { name: /h3/ })).not.toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /h2/ })).toBeInTheDocument();
  await page.getByRole("searchbox", { name: "Search tool hosts" }).fill("PING");
  await expect.element(page.getByRole("row", { name: /h2/ })).not.toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /h9/ })).toBeInTheDocument();
  await expect.poll(() => location.search).toBe("?state=open&text=PING");
});

test("Enter opens one with its tools, its numbers, its connections and its entries; Escape closes it", async () => {
  const { asked } = await opened();
  (page.getByRole("row", { name: /h9/ }).element() as HTMLElement).focus();
  await userEvent.keyboard("{ArrowDown}{Enter}");
  await expect.element(page.getByRole("heading", { name: "h3: demo" })).toBeVisible();
  await expect.element(page.getByRole("listitem").getByText("demo__slow")).toBeVisible();
  const same = page.getByRole("table", { name: "Connections of demo: 2" });
  await expect.element(same.getByRole("row", { name: /^h1 .* closed: replaced by a newer connection of this host 1008/ })).toBeInTheDocument();
  const recent = page.getByRole("table", { name: /Recent entries/ });
  await expect.element(recent.getByRole("row", { name: /← out · host host message tool\.dispatch request · id "d7" · .*, for call c7/ })).toBeInTheDocument();
  await expect.element(recent.getByRole("row", { name: /dispatch stopped acknowledged · host demo has stopped d7, 12 ms after tool\.cancel, for call c7/ })).toBeInTheDocument();
  expect(recent.getByRole("row").elements().slice(1).map((row) => row.querySelector("a")?.getAttribute("href"))).toEqual([21, 20, 10].map((seq) => `/dashboard/trace?at=${seq}`));
  await expect.element(recent.getByRole("link", { name: "c7" }).first()).toHaveAttribute("href", "/dashboard/calls/run.c7");
  await expect.element(page.getByRole("link", { name: "its entries" })).toHaveAttribute("href", "/dashboard/trace?view=all&filter=connection%3Ah3");
  expect(asked.filter((url) => url.startsWith("/api/events?")).every((url) => url.includes("connection=h3"))).toBe(true);
  await userEvent.keyboard("{Escape}");
  await expect.poll(() => location.pathname).toBe("/dashboard/server/hosts");
});

test("one that never registered has no tools, and no other connections", async () => {
  await opened("/h2");
  await expect.element(page.getByRole("heading", { name: "h2: not registered" })).toBeVisible();
  await expect.element(page.getByText("None.", { exact: true })).toBeVisible();
  await expect.element(page.getByRole("table", { name: /Recent entries/ })).toBeInTheDocument();
});

test("a host that is not known is said to be so", async () => {
  await opened("/h99");
  await expect.element(page.getByText(/This run of the server knows no/)).toBeVisible();
});

test("where tool hosts are off, it says how to turn them on", async () => {
  answerApi((path) => (path === "/api/server" ? { mcp: null, tool_hosts: { enabled: false, connected: 0 } } : undefined));
  const { show } = await openView(HostsView, "/server/hosts/:id?", "/server/hosts");
  show({}, "run");
  await expect.element(page.getByRole("heading", { name: "Tool hosts are off" })).toBeVisible();
  await expect.element(page.getByText("--toolhost-secret")).toBeVisible();
  await inBothThemes(() => expectAccessible());
});

test("while none has connected, it says how to try one", async () => {
  answerApi((path) => (path === "/api/server" ? { mcp: null, tool_hosts: { enabled: true, connected: 0 } } : undefined));
  const { show } = await openView(HostsView, "/server/hosts/:id?", "/server/hosts");
  show({}, "run");
  await expect.element(page.getByText(/mcp-probe toolhost-demo/)).toBeVisible();
  await expect.element(page.getByText("Tool hosts are off")).not.toBeInTheDocument();
});

test("it is accessible in light and dark, also where there is little room", async () => {
  await opened("/h3");
  await expect.element(page.getByRole("table", { name: /Recent entries/ })).toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
  await page.viewport(400, 800);
  await expect.element(page.getByRole("heading", { name: "h3: demo" })).toBeVisible();
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(400);
  await expectAccessible();
});
