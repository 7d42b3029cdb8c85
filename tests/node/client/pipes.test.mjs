// What the official TypeScript SDKs see through transports that carry everything on one connection: 1.32.2 by stdio and
// WebSocket, 2.4.0 by stdio in both eras. tests/clients/test_typescript_sdk_stdio.py runs the stories; those of stdio
// start servers of their own, those of WebSocket use the one at PROBE_URL.

import assert from "node:assert/strict";
import { test as story } from "node:test";
import { Client as ModernClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
import { CAPABILITIES, INFO, MODERN, Person as ModernPerson, call } from "./modern-support.mjs";
import { Person, callTool, settledRecords, taskMessages } from "./support.mjs";

const test = (name, body) => story(name, { timeout: 60_000 }, body);
const range = (count) => Array.from({ length: count }, (_, at) => at + 1);
const inherited = Object.fromEntries(["PATH", "PYTHONPATH", "VIRTUAL_ENV"].filter((name) => process.env[name]).map((name) => [name, process.env[name]]));
const command = { command: process.env.PROBE_PYTHON, args: ["-m", "probe", "stdio", "--tools", "all"], env: inherited, stderr: "pipe" };

const legacyTransports = {
  stdio: () => new StdioClientTransport(command),
  WebSocket: () => new WebSocketClientTransport(new URL("ws?tools=all", process.env.PROBE_URL.replace("http", "ws"))),
};

// Runs `use(client)` with a legacy client; whatever becomes of it, it is closed.
async function connected(transport, use, person = new Person()) {
  const client = new Client({ name: "typescript-sdk-pipes", version: "1.32.2" }, { capabilities: person.capabilities });
  person.sit(client);
  await client.connect(legacyTransports[transport]());
  await client.listTools();
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

// Runs `use(client)` with a client of both eras and a process of its own, which has to end by itself.
async function modern(use, { mode = "auto", person = new ModernPerson() } = {}) {
  const client = new ModernClient(INFO, { capabilities: CAPABILITIES, versionNegotiation: { mode } });
  person.sit(client);
  const transport = new ModernStdio(command);
  let said = "";
  transport.stderr.on("data", (data) => (said += data));
  await client.connect(transport);
  try {
    await use(client);
  } finally {
    await client.close();
  }
  // a process that has to be stopped by a signal says that it was
  assert.match(said, /^MCP Probe speaks on standard input and output[^\n]*\n$/);
}

// Both SDKs put off a notification to the next microtask but take a response at once. So the last step is lost to them
// when both come in one chunk, as they may where one connection carries everything.
function heardSteps(seen, steps) {
  assert.deepEqual(seen, range(seen.length));
  assert.ok(seen.length >= steps - 1, `${seen}`);
}

// --- the legacy SDK

test("stdio: calls, progress and large results", () => connected("stdio", calls));
test("WebSocket: calls, progress and large results", () => connected("WebSocket", calls));

async function calls(client) {
  assert.equal(client.getServerVersion().name, "mcp-probe");
  await client.ping();
  const seen = [];
  const result = await callTool(client, "progress", { steps: 6, step_ms: 20 }, { onprogress: (at) => seen.push(at.progress) });
  heardSteps(seen, 6);
  assert.deepEqual(result.structuredContent, { steps: 6, notified: true, done: true });
  const long = await callTool(client, "long_output", { blocks: 50, chars: 65536 });
  assert.deepEqual(long.content.map((block) => block.text.length), Array(50).fill(65536));
  assert.equal((await callTool(client, "chatty")).content[3].text, "fourth block: unicode; café résumé naïve");
  await assert.rejects(callTool(client, "no_such_tool"), { code: -32602 });
}

test("stdio: what the server asks is answered", () => questions("stdio"));
test("WebSocket: what the server asks is answered", () => questions("WebSocket"));

async function questions(transport) {
  const person = new Person({ answer: { action: "accept", content: { name: "Ada" } } });
  const ask = async (client) => {
    assert.deepEqual((await callTool(client, "elicit_simple_form")).structuredContent.content, { name: "Ada" });
    assert.deepEqual((await callTool(client, "sampling_demo", { style: "haiku" })).structuredContent, { text: "old pond" });
  };
  await connected(transport, ask, person);
  assert.equal(person.asked.length, 2);
}

test("stdio: a task runs to its end", () => connected("stdio", task));
test("WebSocket: a task runs to its end", () => connected("WebSocket", task));

async function task(client) {
  const messages = await taskMessages(client, "task_with_progress", { itemCount: 2, delayPerItemMs: 20 });
  assert.equal(messages[0].type, "taskCreated");
  assert.deepEqual(messages.at(-1).result.structuredContent, { processedItems: 2 });
}

test("WebSocket: an aborted call is cancelled at the server", () =>
  connected("WebSocket", async (client) => {
    const abort = new AbortController();
    const options = { signal: abort.signal, onprogress: () => abort.abort("enough") };
    await assert.rejects(callTool(client, "progress", { steps: 97, step_ms: 100 }, options));
    const [record] = await settledRecords(({ transport, arguments: given }) => transport === "websocket" && given.steps === 97);
    assert.deepEqual([record.outcome, record.cancelled_by, record.answered], ["cancelled", "notification", false]);
    assert.equal((await callTool(client, "chatty")).content.length, 4);
  }));

test("stdio: after an aborted call the connection goes on", () =>
  connected("stdio", async (client) => {
    const abort = new AbortController();
    const options = { signal: abort.signal, onprogress: () => abort.abort("enough") };
    await assert.rejects(callTool(client, "progress", { steps: 97, step_ms: 100 }, options));
    assert.equal((await callTool(client, "chatty")).content.length, 4);
  }));

// --- the SDK of both eras

test("stdio in the modern era: discovery, calls and progress", () =>
  modern(async (client) => {
    assert.deepEqual([client.getProtocolEra(), client.getNegotiatedProtocolVersion()], ["modern", MODERN]);
    const seen = [];
    const result = await call(client, "progress", { steps: 6, step_ms: 20 }, { onprogress: ({ progress }) => seen.push(progress) });
    heardSteps(seen, 6);
  assert.deepEqual(result.structuredContent, { steps: 6, notified: true, done: true });
    const long = await call(client, "long_output", { blocks: 50, chars: 65536 });
    assert.deepEqual(long.content.map((block) => block.text.length), Array(50).fill(65536));
  }));

test("stdio in the modern era: input that is required is given, an aborted call ends", () => {
  const person = new ModernPerson({ "elicitation/create": { action: "accept", content: { name: "Ada" } } });
  return modern(
    async (client) => {
      assert.deepEqual((await call(client, "elicit_simple_form")).structuredContent.content, { name: "Ada" });
      const abort = new AbortController();
      const options = { signal: abort.signal, onprogress: () => abort.abort("enough") };
      await assert.rejects(call(client, "progress", { steps: 97, step_ms: 100 }, options));
      assert.equal((await call(client, "chatty")).content.length, 4);
    },
    { person },
  );
});

test("stdio in the legacy era: a client that negotiates nothing", () =>
  modern(
    async (client) => {
      assert.deepEqual([client.getProtocolEra(), client.getNegotiatedProtocolVersion()], ["legacy", "2025-11-25"]);
      await client.ping();
      assert.equal((await call(client, "chatty")).content.length, 4);
    },
    { mode: "legacy" },
  ));
