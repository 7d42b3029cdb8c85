import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPage } from "./browser.ts";
import { CHROMIUM_ARGS } from "./chromium.ts";
import { type Json, LegacyClient } from "./client.ts";
import { freePort, type Server, startServer } from "./server.ts";

// What browsers make of the server's headers: SECURITY.md has the rules, and tests/security what is sent.

const META = "io.modelcontextprotocol";
const ALLOWED = "app.example";

let server: Server;
let browser: Browser;
/** A web server of somebody else; every name under `.example` leads to it, and to the probe by the probe's port. */
let elsewhere: HttpServer;

beforeAll(async () => {
  elsewhere = createServer((_request, response) => {
    response.setHeader("content-type", "text/html").end("<!doctype html><title>elsewhere</title>");
  });
  await new Promise<void>((resolve) => {
    elsewhere.listen(0, "127.0.0.1", resolve);
  });
  server = await startServer(await freePort(), "--allowed-origins", `http://${ALLOWED}:${portOf(elsewhere)}`);
  const own = process.env["PROBE_CHROMIUM"];
  browser = await chromium.launch({
    args: [
      ...CHROMIUM_ARGS,
      "--host-resolver-rules=MAP *.example 127.0.0.1",
      // all of them are this machine; what is asked here is what the server says, not what the browser fears
      "--disable-features=LocalNetworkAccessChecks",
    ],
    ...(own !== undefined && { executablePath: own }),
  });
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  elsewhere?.close();
});

const portOf = (of: HttpServer) => (of.address() as AddressInfo).port;

async function pageOf(name: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`http://${name}:${portOf(elsewhere)}/`);
  return page;
}

/** What a page gets when it calls `initialize` of the server: the status and the session, or that it may not know. */
function initialize(page: Page): Promise<string> {
  return page.evaluate(async (url) => {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } };
    try {
      const response = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-method": "initialize" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
      });
      return `${response.status} ${response.headers.get("mcp-session-id") === null ? "no session" : "session"}`;
    } catch {
      return "refused";
    }
  }, server.url);
}

test("a page of an allowed origin is a client, also with headers of its own", async () => {
  expect(await initialize(await pageOf(ALLOWED))).toBe("200 session");
});

test("a page of any other origin is none, and opens no WebSocket", async () => {
  const page = await pageOf("evil.example");
  expect(await initialize(page)).toBe("refused");
  const opened = await page.evaluate(
    (url) =>
      new Promise((resolve) => {
        const socket = new WebSocket(`${url.replace("http", "ws")}/ws`, "mcp");
        socket.addEventListener("open", () => resolve("open"));
        socket.addEventListener("error", () => resolve("refused"));
      }),
    server.url,
  );
  expect(opened).toBe("refused");
});

/** Whether the icon of the dashboard is shown in a page. */
async function icon(page: Page): Promise<unknown> {
  const index = await (await fetch(`${server.url}/dashboard`)).text();
  const source = `${server.url}/${/href="(dashboard\/assets\/icon[^"]+)"/.exec(index)?.[1] ?? "no icon"}`;
  return page.evaluate(
    (src) =>
      new Promise((resolve) => {
        const element = Object.assign(document.createElement("img"), { onload: () => resolve("shown"), onerror: () => resolve("refused") });
        element.src = src;
      }),
    source,
  );
}

test("a page of the server itself shows its images", async () => {
  const { page } = await openPage(browser, `${server.url}/dashboard`);
  expect(await icon(page)).toBe("shown");
});

test.each([ALLOWED, "evil.example"])("a page of %s reads no page of the server, embeds none and frames none", async (name) => {
  const page = await pageOf(name);
  expect(await icon(page)).toBe("refused");
  const outcomes = await page.evaluate(async (url) => {
    const read = await fetch(`${url}/api/server`).then(() => "read", () => "refused");
    const script = await new Promise((resolve) => {
      const element = Object.assign(document.createElement("script"), { onload: () => resolve("run"), onerror: () => resolve("refused") });
      element.src = `${url}/api/server`;
      document.head.append(element);
    });
    return { read, script };
  }, server.url);
  expect(outcomes).toEqual({ read: "refused", script: "refused" });
  await page.evaluate((url) => {
    const frame = document.createElement("iframe");
    frame.src = `${url}/dashboard`;
    document.body.append(frame);
    return new Promise((resolve) => {
      frame.addEventListener("load", resolve);
    });
  }, server.url);
  for (const frame of page.frames()) expect(await frame.locator("#root").count()).toBe(0);
});

test("a name that leads here and is not ours shows nothing", async () => {
  const page = await browser.newPage();
  const response = await page.goto(`${server.url.replace("127.0.0.1", "rebound.example")}/dashboard`);
  expect(response?.status()).toBe(403);
  expect(await page.locator("#root").count()).toBe(0);
});

test("a person confirms an interaction by its button", async () => {
  const client = { [`${META}/protocolVersion`]: "2026-07-28", [`${META}/clientInfo`]: { name: "desk", version: "1" } };
  const capabilities = { [`${META}/clientCapabilities`]: { elicitation: { url: {} } } };
  const params = { name: "elicit_url", arguments: {}, _meta: { ...client, ...capabilities } };
  const response = await fetch(`${server.url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "elicit_url",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  const asked = ((await response.json()) as { result: { inputRequests: Record<string, { params: { url: string } }> } }).result.inputRequests;
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(Object.values(asked)[0]?.params.url ?? "");
  await page.getByRole("button", { name: "Confirm" }).click();
  await page.getByRole("heading", { name: "Confirmed" }).waitFor();
  // not even its style was stopped; browsers look for an icon by themselves
  expect(complaints.filter((text) => !text.includes("404"))).toEqual([]);
});

test("what a client calls itself is text in the dashboard", async () => {
  const name = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>";
  await new LegacyClient(server.url).open(name, { experimental: { [name]: { [name]: name } } } as Json);
  const { page, complaints } = await openPage(browser, `${server.url}/dashboard/clients`);
  await page.getByRole("listitem").filter({ hasText: "<img src=x" }).first().waitFor();
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(await page.locator("img[src=x]").count()).toBe(0);
  expect(complaints).toEqual([]);
});
