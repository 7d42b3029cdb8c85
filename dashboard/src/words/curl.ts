import { at, writeJson } from "~/protocol/json";
import type { CallRow, Entry, HttpRequest } from "~/protocol/schema";

const MODERN = "2026-07-28";
const META = "io.modelcontextprotocol";
const TYPES = "-H Content-Type:application/json -H Accept:application/json,text/event-stream";

/** One word of a POSIX shell, whatever the text has in it. */
export const shellWord = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The option of curl for a header; in quotes where the shell or curl would take a character for something else. */
export function header(name: string, value: string): string {
  return /^[\w./-]+$/.test(name + value) ? `-H ${name}:${value}` : `-H ${shellWord(`${name}: ${value}`)}`;
}

/** A command of some lines; empty ones are left out. */
const command = (...lines: readonly string[]) => lines.filter((line) => line !== "").join(" \\\n  ");
const data = (message: unknown, indent = 2) => `-d ${shellWord(writeJson(message, indent))}`;

interface Asked {
  id?: unknown;
  tool: string;
  arguments: unknown;
  /** Undefined and null: none. */
  token?: unknown;
  client?: { name: string; version: string };
  capabilities?: object;
  revision?: string;
}

/** The `tools/call` of a session; with `modern`, one of 2026-07-28, which says who its client is. */
export function callMessage(asked: Asked, modern: boolean): object {
  const { id = 1, tool, arguments: given, token, client = { name: "curl", version: "0" }, capabilities = {}, revision = MODERN } = asked;
  const meta = {
    ...(token != null && { progressToken: token }),
    ...(modern && { [`${META}/protocolVersion`]: revision, [`${META}/clientInfo`]: client, [`${META}/clientCapabilities`]: capabilities }),
  };
  const params = { name: tool, arguments: given, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
  return { jsonrpc: "2.0", id, method: "tools/call", params };
}

/** The headers by which 2026-07-28 routes a call. */
export function routing(tool: string, revision = MODERN): readonly string[] {
  return [header("MCP-Protocol-Version", revision), "-H Mcp-Method:tools/call", header("Mcp-Name", tool)];
}

/** Sends a message of 2026-07-28: no handshake, each request says everything. With an `indent` of 0 the message is one line. */
export function modernCurl(url: string, headers: readonly string[], message: unknown, indent = 2): string {
  return command(`curl -N ${shellWord(url)}`, TYPES, headers.join(" "), data(message, indent));
}

/** Opens a session, and sends a message in it. It runs in sh, bash and zsh: no variable holds more than one word. */
export function legacyCurl(url: string, headers: readonly string[], message: unknown, revision: string, client: object): string {
  const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: revision, capabilities: {}, clientInfo: client } };
  const session = '-H "Mcp-Session-Id: $S"';
  return [
    `U=${shellWord(url)}`,
    `S=$(${command('curl -si "$U"', TYPES, data(initialize), String.raw`| tr -d '\r' | sed -n 's/^mcp-session-id: //p')`)}`,
    command('curl "$U"', TYPES, session, `-d '{"jsonrpc":"2.0","method":"notifications/initialized"}'`),
    command('curl -N "$U"', TYPES, [session, ...headers].join(" "), data(message)),
  ].join("\n");
}

type Received = Extract<Entry, { kind: "message.received" }>;

/**
 * A command that makes a call again: the same message with the same headers, as far as the log tells them.
 *
 * `address` is the MCP address of the server. A call of the older revisions needs a session, which the command opens. What
 * did not come over HTTP is sent over HTTP. Secrets are as the log has them, hidden, and the command says so. Null where the log
 * keeps no whole message, and the row not all arguments.
 */
export function curlOfCall(call: CallRow, entries: readonly Entry[], address: string): string | null {
  const received = entries.find((entry): entry is Received => entry.kind === "message.received" && entry.method === "tools/call");
  const message = received?.message ?? madeAgain(call);
  if (message === null) return null;
  const request = entries.find((entry) => entry.kind === "http.request" && entry.seq === received?.cause);
  const head = request?.kind === "http.request" ? request : { query: "", headers: [], hidden: [] };
  const hidden = [...(received?.hidden ?? []).map(([path]) => path), ...head.hidden];
  // The client has chosen these names, and a line break would end the comment.
  const note = hidden.length === 0 ? "" : `# hidden in the log, to be filled in: ${hidden.map((name) => JSON.stringify(name)).join(", ")}\n`;
  const url = `${address}${head.query === "" ? "" : `?${head.query}`}`;
  const sent = head.headers.filter(([name = ""]) => ROUTING.test(name)).map(([name = "", value = ""]) => header(name, value));
  if (call.era !== "modern") return note + legacyCurl(url, sent, message, call.revision, { name: call.client_name, version: call.client_version });
  // a client that left one out, or wrote another one, is repeated exactly
  return note + modernCurl(url, head.headers.length > 0 ? sent : routing(String(at(message, "params", "name")), call.revision || MODERN), message);
}

const ROUTING = /^(mcp-(?!session-id)|authorization$)/;

/** The call as a message, where that one is not at hand; null where its arguments were cut. */
function madeAgain(call: CallRow): object | null {
  if (at(call.arguments, "cut") !== undefined) return null;
  const client = { name: call.client_name, version: call.client_version };
  const asked = { id: call.request_id, tool: call.tool, arguments: call.arguments, token: call.progress_token, client, revision: call.revision };
  return callMessage(asked, call.era === "modern");
}

// what curl makes itself, or what belongs to the connection of then
const OWN = new Set(["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "accept-language", "sec-fetch-mode", "keep-alive", "te", "upgrade"]);

/**
 * The command that sends an HTTP request again: its headers as they were received, and the messages of its body.
 *
 * What the log does not keep (secrets, and all but the beginning of a session id) is a variable of the shell, named after the header.
 */
export function curlOfRequest(request: HttpRequest, exchange: readonly Entry[], base: string): string {
  const address = `${base}${request.path}${request.query === "" ? "" : `?${request.query}`}`;
  const headers = request.headers.filter(([name = ""]) => !OWN.has(name.toLowerCase())).map(([name = "", value = ""]) => {
    const variable = name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
    return isHidden(request, name, value) ? `-H ${shellWord(`${name}: `)}"$${variable}"` : `-H ${shellWord(`${name}: ${value}`)}`;
  });
  const method = request.method === "POST" ? "" : `-X ${shellWord(request.method)} `;
  return command(`curl -N ${method}${shellWord(address)}`, ...headers, bodyOf(exchange));
}

function isHidden({ hidden }: HttpRequest, name: string, value: string): boolean {
  return hidden.some((each) => each.toLowerCase() === name.toLowerCase()) || (name.toLowerCase() === "mcp-session-id" && value.endsWith("…"));
}

function bodyOf(exchange: readonly Entry[]): string {
  const received = exchange.filter((entry) => entry.kind === "message.received");
  const [first] = received;
  if (first === undefined) return "";
  return `--data-raw ${shellWord(writeJson(first.batch === null ? first.message : received.map(({ message }) => message)))}`;
}
