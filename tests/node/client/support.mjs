// A client of the official TypeScript SDK, a person behind it, and a line to the server that can be cut.

import net from "node:net";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const SERVER = new URL(process.env.PROBE_URL);

// What the client is asked is kept, what it answers is set beforehand; `capabilities` declares what it can be asked.
export class Person {
  constructor({ answer = { action: "decline" }, text = "old pond", capabilities = { elicitation: {}, sampling: {} } } = {}) {
    Object.assign(this, { answer, text, capabilities, asked: [], logged: [] });
  }

  sit(client) {
    if (this.capabilities.elicitation) {
      client.setRequestHandler(ElicitRequestSchema, async (request) => {
        this.asked.push(request.params);
        return this.answer;
      });
    }
    if (this.capabilities.sampling) {
      client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
        this.asked.push(request.params);
        if (this.text === null) throw new Error("User rejected sampling request");
        return { role: "assistant", content: { type: "text", text: this.text }, model: "test", stopReason: "endTurn" };
      });
    }
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void this.logged.push(params.level));
  }
}

// Runs `use(client)` in a session of its own, whatever becomes of it ends the session.
export async function connected(use, { person = new Person(), url = SERVER } = {}) {
  const client = new Client({ name: "typescript-sdk", version: "1.32.2" }, { capabilities: person.capabilities });
  person.sit(client);
  const transport = new StreamableHTTPClientTransport(new URL("?tools=all", url));
  await client.connect(transport);
  await client.listTools();
  try {
    return await use(client, transport);
  } finally {
    await transport.terminateSession();
    await client.close();
  }
}

export async function callTool(client, name, args = {}, options = {}) {
  return client.callTool({ name, arguments: args }, undefined, options);
}

// All messages of a task-augmented call, to its end.
export async function taskMessages(client, name, args = {}, options = {}) {
  const messages = [];
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, options)) {
    messages.push(message);
  }
  return messages;
}

// Starts a task and returns its handle.
export async function beginTask(client, name, args = {}) {
  const stream = client.experimental.tasks.callToolStream({ name, arguments: args });
  const { value } = await stream.next();
  await stream.return();
  if (value.type !== "taskCreated") throw value.error;
  return value.task;
}

// The records of the server that fit, newest first, once none of them is running.
export async function settledRecords(fits) {
  for (;;) {
    const { calls } = await (await fetch(new URL("api/calls?limit=100", SERVER))).json();
    const records = calls.filter(fits);
    if (records.length && records.every((record) => record.outcome !== null)) return records;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Runs `use(url, cut)` behind a TCP proxy; `cut()` resets every connection that it carries at that moment.
export async function throughProxy(use) {
  const sockets = new Set();
  const proxy = net.createServer((near) => {
    const far = net.connect({ host: SERVER.hostname, port: Number(SERVER.port) });
    for (const [from, to] of [[near, far], [far, near]]) {
      sockets.add(from);
      from.on("close", () => (sockets.delete(from), to.destroy()));
      from.on("error", () => {});
      from.pipe(to);
    }
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const cut = () => sockets.forEach((socket) => socket.resetAndDestroy());
  try {
    return await use(new URL(SERVER.pathname, `http://127.0.0.1:${proxy.address().port}`), cut);
  } finally {
    cut();
    proxy.close();
  }
}
