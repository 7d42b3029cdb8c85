// A client of the official TypeScript SDK 2.4.0, a person behind it, and what the server at PROBE_URL saw of it.

import { spawn } from "node:child_process";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

export const SERVER = new URL(process.env.PROBE_URL);
export const MODERN = "2026-07-28";
export const PREFIX = "io.modelcontextprotocol/";
export const TASKS = `${PREFIX}tasks`;
export const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
export const WITH_TASKS = { ...CAPABILITIES, extensions: { [TASKS]: {} } };
export const INFO = { name: "typescript-sdk", version: "2.4.0" };

// A schema that everything fits: the SDK wants one for each method that is not its own.
export const ANYTHING = { "~standard": { version: 1, vendor: "tests", validate: (value) => ({ value }) } };

// What the client is asked is kept; `answers` has its results by method, each an object or a function of the params.
export class Person {
  constructor(answers = {}) {
    this.answers = {
      "elicitation/create": { action: "decline" },
      "sampling/createMessage": { role: "assistant", content: { type: "text", text: "old pond" }, model: "test" },
      "roots/list": { roots: [{ uri: "file:///tree", name: "tree" }] },
      ...answers,
    };
    this.asked = [];
  }

  sit(client) {
    for (const [method, answer] of Object.entries(this.answers)) {
      client.setRequestHandler(method, async (request, context) => {
        this.asked.push({ method, ...request.params });
        return typeof answer === "function" ? answer(request.params, context) : answer;
      });
    }
  }
}

// Runs `use(client, transport)` with a client that is connected; whatever becomes of it, it is closed.
export async function connected(use, { url = SERVER, person = new Person(), mode = "auto", tools = "all", connect = {}, transport = {}, ...options } = {}) {
  const { capabilities = CAPABILITIES } = options;
  const client = new Client(INFO, { ...options, capabilities, versionNegotiation: { mode } });
  if (capabilities.elicitation) person.sit(client);
  const channel = new StreamableHTTPClientTransport(new URL(`?tools=${tools}`, url), transport);
  await client.connect(channel, connect);
  try {
    return await use(client, channel);
  } finally {
    await channel.terminateSession();
    await client.close();
  }
}

export const call = (client, name, args = {}, options = {}, params = {}) => client.callTool({ name, arguments: args, ...params }, options);

// The events of the server from now on: the function gives those of some kinds.
export async function watch() {
  const { last } = await page("limit=1");
  return async (...kinds) => {
    const found = [];
    for (let since = last; ; ) {
      const { events, next } = await page(`since=${since}`);
      if (events.length === 0) return found.filter(({ kind }) => kinds.includes(kind));
      found.push(...events);
      since = next;
    }
  };
}

const page = async (query) => (await fetch(new URL(`api/events?${query}`, SERVER))).json();

// The requests and notifications of one method that the server received.
export async function received(events, method) {
  return (await events("message.received")).map(({ message }) => message).filter((message) => message.method === method);
}

// Polls until `probe` gives something true; the timeout of the story is its bound.
export async function until(probe) {
  for (;;) {
    const found = await probe();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// A tools/call by hand, and its result.
export async function rawCall(name, args = {}) {
  const said = { [`${PREFIX}protocolVersion`]: MODERN, [`${PREFIX}clientInfo`]: INFO, [`${PREFIX}clientCapabilities`]: WITH_TASKS };
  const params = { name, arguments: args, _meta: said };
  const response = await fetch(new URL("?tools=all", SERVER), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MODERN,
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: "raw", method: "tools/call", params }),
  });
  return (await response.json()).result;
}

// A fetch like that of a client behind a gateway which refuses whatever has the headers of the modern era.
export function gateway(status) {
  const refuse = async (url, init) => {
    if (!new Headers(init.headers).has("mcp-method")) return fetch(url, init);
    refuse.refused += 1;
    return new Response("What is this?", { status });
  };
  refuse.refused = 0;
  return refuse;
}

// Runs `use(url, stop)` with a server of its own; `stop` ends it properly and resolves when it has gone.
export async function served(use) {
  const server = spawn(process.env.PROBE_PYTHON, ["-m", "probe", "serve", "--port", "0", "--grace-s", "1"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const gone = new Promise((resolve) => server.once("exit", resolve));
  const stop = () => (server.kill("SIGTERM"), gone);
  try {
    const url = await new Promise((resolve, reject) => {
      let said = "";
      server.stderr.on("data", (data) => {
        said += data;
        const found = /http:\/\/\S+\/mcp/.exec(said);
        if (found) resolve(new URL(found[0]));
      });
      gone.then(() => reject(new Error(said)));
    });
    return await use(url, stop);
  } finally {
    server.kill("SIGKILL");
  }
}
