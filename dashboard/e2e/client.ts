export type Json = Record<string, unknown>;

/** A request id or a progress token; a bigint is sent with all of its digits. */
type Id = number | bigint | string;

const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown };

const bodyOf = (message: Json) => JSON.stringify(message, (_key, value: unknown) => (typeof value === "bigint" ? rawJSON(String(value)) : value));

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
const META = "io.modelcontextprotocol";

/** The messages of a response, in their order: one for JSON, all as they come for an event stream. */
async function* messages(response: Response): AsyncGenerator<Json> {
  if (response.headers.get("content-type")?.startsWith("application/json")) {
    yield (await response.json()) as Json;
    return;
  }
  let text = "";
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (data !== "") yield JSON.parse(data) as Json;
    }
  }
}

/** A session of the legacy era, spoken by hand, so that ids and tokens are exactly what a test wants. */
export class LegacyClient {
  readonly #url: string;
  #session: string | null = null;

  constructor(url: string) {
    this.#url = `${url}/mcp`;
  }

  async open(name: string, capabilities: Json = {}): Promise<this> {
    const params = { protocolVersion: LEGACY, capabilities, clientInfo: { name, version: "1.0" } };
    const response = await this.#post({ jsonrpc: "2.0", id: "initialize", method: "initialize", params });
    this.#session = response.headers.get("mcp-session-id");
    await response.text();
    await this.notify("notifications/initialized", {});
    return this;
  }

  async notify(method: string, params: Json): Promise<void> {
    await (await this.#post({ jsonrpc: "2.0", method, params })).text();
  }

  async respond(id: unknown, result: Json): Promise<void> {
    await (await this.#post({ jsonrpc: "2.0", id, result })).text();
  }

  /** Sends a request and gives its messages as they come; the last one is the response, unless it was cancelled. */
  async *request(id: Id, method: string, params: Json): AsyncGenerator<Json> {
    yield* messages(await this.#post({ jsonrpc: "2.0", id, method, params }));
  }

  /** The response to a request. */
  async ask(id: Id, method: string, params: Json): Promise<Json> {
    let last: Json = {};
    for await (const message of this.request(id, method, params)) last = message;
    return last;
  }

  #post(message: Json): Promise<Response> {
    const session: Record<string, string> = this.#session === null ? {} : { "mcp-session-id": this.#session, "mcp-protocol-version": LEGACY };
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...session };
    return fetch(this.#url, { method: "POST", headers, body: bodyOf(message) });
  }
}

/** One modern tool call; aborting the signal closes its response, which cancels it. */
export async function* modernCall(url: string, name: string, tool: string, args: Json, given: { id: Id; token?: Id; signal?: AbortSignal }): AsyncGenerator<Json> {
  const meta = {
    [`${META}/protocolVersion`]: MODERN,
    [`${META}/clientInfo`]: { name, version: "1.0" },
    [`${META}/clientCapabilities`]: {},
    ...(given.token !== undefined && { progressToken: given.token }),
  };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/call",
    "mcp-name": tool,
  };
  const body = bodyOf({ jsonrpc: "2.0", id: given.id, method: "tools/call", params: { name: tool, arguments: args, _meta: meta } });
  const response = await fetch(`${url}/mcp`, { method: "POST", headers, body, ...(given.signal && { signal: given.signal }) });
  yield* messages(response);
}

/** Reads to the end. */
export async function all(stream: AsyncIterable<Json>): Promise<Json[]> {
  const read: Json[] = [];
  for await (const message of stream) read.push(message);
  return read;
}
