// The official TypeScript SDK on node's own HTTP server, by its low-level server, which is the faster of its two.
// `--json` answers calls with JSON instead of a stream. CommonJS, because only that finds packages by NODE_PATH.
"use strict";

const { randomUUID } = require("node:crypto");
const { createServer } = require("node:http");
const { Server } = require("@modelcontextprotocol/sdk/server/index.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { CallToolRequestSchema, ListToolsRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const TEXT = "x".repeat(1024);
const TOOLS = ["echo", "progress", "wait", "ended"];
const json = process.argv.includes("--json");
const transports = new Map();
// When the scope of each `wait` was gone, in seconds by the wall clock, which the benchmark shares.
const ended = {};

function report(extra, progress, total, message) {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  const params = { progressToken, progress, total, message };
  return extra.sendNotification({ method: "notifications/progress", params });
}

async function progress(extra, { steps, step_ms: stepMs }) {
  const start = performance.now();
  for (let step = 1; step <= steps; step += 1) {
    // Until a moment, not for a while: what one step was late must not delay those after it.
    const left = start + step * stepMs - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, left)));
    await report(extra, step, steps, `step ${step}/${steps}`);
  }
}

async function wait(extra) {
  await report(extra, 0);
  try {
    await new Promise((_, reject) => {
      extra.signal.addEventListener("abort", () => reject(extra.signal.reason));
    });
  } finally {
    ended[extra.requestId] = (performance.timeOrigin + performance.now()) / 1000;
  }
}

function makeServer() {
  const server = new Server({ name: "reference", version: "1" }, { capabilities: { tools: {} } });
  const listed = TOOLS.map((name) => ({ name, inputSchema: { type: "object" } }));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: listed }));
  server.setRequestHandler(CallToolRequestSchema, async (request, extra) => {
    const { name, arguments: given } = request.params;
    if (name === "progress") await progress(extra, given);
    if (name === "wait") await wait(extra);
    const text = name === "ended" ? JSON.stringify(ended) : TEXT;
    return { content: [{ type: "text", text }] };
  });
  return server;
}

async function transportOf(request) {
  const known = transports.get(request.headers["mcp-session-id"]);
  if (known) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: json,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  await makeServer().connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  const transport = await transportOf(request);
  await transport.handleRequest(request, response);
});
// On a busy machine the first of 256 clients waits longer than the default until the last one is there.
http.keepAliveTimeout = 60_000;
http.listen({ host: "127.0.0.1", port: 0, backlog: 2048 }, () => {
  console.log(`http://127.0.0.1:${http.address().port}/mcp`);
});
