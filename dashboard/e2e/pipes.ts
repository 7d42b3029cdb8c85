import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Json } from "./client.ts";

const STREAM = "mcp-probe/stream";

/** What `notifications/stream/create` says of a draft stream: how its client comes back for it. */
export interface Ticket {
  streamId: string;
  secret: string;
}

/** A session on one connection that carries everything. Messages that nobody has asked for yet are kept. */
export class PipeClient {
  readonly #send: (text: string) => void;
  readonly #unread: Json[] = [];
  #wake: () => void = () => undefined;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  /** A message of the server. */
  take(text: string): void {
    this.#unread.push(JSON.parse(text) as Json);
    this.#wake();
  }

  /** Initializes a session that has draft streams. */
  async open(name: string): Promise<this> {
    const params = { protocolVersion: "2025-11-25", capabilities: { experimental: { streams: {} } }, clientInfo: { name, version: "1.0" } };
    this.request("initialize", "initialize", params);
    await this.until((message) => message["id"] === "initialize");
    this.say({ method: "notifications/initialized" });
    return this;
  }

  request(id: number | string, method: string, params: Json): void {
    this.say({ id, method, params });
  }

  say(message: Json): void {
    this.#send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  /** The first message that is wanted; those before it are gone. */
  async until(wanted: (message: Json) => boolean): Promise<Json> {
    for (;;) {
      const message = this.#unread.shift();
      if (message === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else if (wanted(message)) return message;
    }
  }

  async progress(step: number): Promise<void> {
    await this.until((message) => (message["params"] as Json | undefined)?.["progress"] === step);
  }

  /** Begins a call of `progress`; its first message. */
  async start(id: number, steps: number, step_ms: number): Promise<Ticket> {
    this.request(id, "tools/call", { name: "progress", arguments: { steps, step_ms }, _meta: { progressToken: `t${id}` } });
    const { params } = await this.until((message) => message["method"] === "notifications/stream/create");
    const { stream, _meta } = params as { stream: { streamId: string }; _meta: { [STREAM]: { secret: string } } };
    return { streamId: stream.streamId, secret: _meta[STREAM].secret };
  }

  /** Reads a stream on, from what has `received` messages; give the id of the request to wait for what answers it. */
  resume(id: number, { streamId, secret }: Ticket, received: number): void {
    this.request(id, "stream/resume", { streamId, _meta: { [STREAM]: { secret, received } } });
  }
}

/** A way to a server that can be cut, as cables are: nobody says goodbye. `port` leads to it. */
export async function cable(port: number): Promise<{ port: number; cut: () => void; end: () => void }> {
  const ends = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [socket, other] of [[near, far], [far, near]] as const) {
      ends.add(socket);
      socket.pipe(other);
      socket.on("error", () => undefined).on("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of ends) socket.resetAndDestroy();
    ends.clear();
  };
  const end = () => {
    cut();
    server.close();
  };
  return { port: (server.address() as { port: number }).port, cut, end };
}

/** A session over WebSocket; it ends when `close` is called, or by itself. */
export async function overWebSocket(port: number, name: string): Promise<{ client: PipeClient; close: () => void }> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws?tools=all`, "mcp");
  const client = new PipeClient((text) => socket.send(text));
  socket.addEventListener("message", (event) => client.take(String(event.data)));
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the WebSocket was not opened")));
  });
  return { client: await client.open(name), close: () => socket.close() };
}

/** A server on standard streams, as a desktop client starts one, with its pages at `url`. */
export async function overStdio(name: string): Promise<{ client: PipeClient; url: string; close: () => Promise<number | null> }> {
  const child = spawn(process.env["PROBE_PYTHON"] ?? "python", ["-m", "probe", "stdio", "--dashboard", "0", "--tools", "all"]);
  const url = await dashboardOf(child);
  const client = new PipeClient((text) => child.stdin.write(`${text}\n`));
  createInterface({ input: child.stdout }).on("line", (line) => client.take(line));
  const close = async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
    return child.exitCode;
  };
  return { client: await client.open(name), url, close };
}

function dashboardOf(child: ChildProcessWithoutNullStreams): Promise<string> {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      const found = /dashboard: (http:\S+)\/dashboard/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
}
