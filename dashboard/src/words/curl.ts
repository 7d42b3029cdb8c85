import { at, writeJson } from "~/protocol/json";
import type { CallRow, Entry } from "~/protocol/schema";
import { shellWord } from "./shell-word";

const MODERN = "2026-07-28";
const META = "io.modelcontextprotocol";
const JSON_AND_EVENTS = ["-H Content-Type:application/json", "-H Accept:application/json,text/event-stream"];

type Received = Extract<Entry, { kind: "message.received" }>;

/**
 * A command that makes a call again: the same message with the same headers, as far as the log tells them.
 *
 * `address` is the MCP address of the server. A call of the older revisions needs a session, which the command opens. What
 * did not come over HTTP is sent over HTTP. Secrets are as the log has them, hidden, and the command says so. Null where the log
 * keeps no whole message, and the row not all arguments.
 */
export function curlOf(call: CallRow, entries: readonly Entry[], address: string): string | null {
  const received = entries.find((entry): entry is Received => entry.kind === "message.received" && entry.method === "tools/call");
  const message = received?.message ?? madeAgain(call);
  if (message === null) return null;
  const request = entries.find((entry) => entry.kind === "http.request" && entry.seq === received?.cause);
  const query = request?.kind === "http.request" && request.query !== "" ? `?${request.query}` : "";
  const sent = request?.kind === "http.request" ? request.headers : [];
  const hidden = [...(received?.hidden ?? []).map(([path]) => path), ...(request?.kind === "http.request" ? request.hidden : [])];
  // The client has chosen these names, and a line break would end the comment.
  const note = hidden.length === 0 ? [] : [`# hidden in the log, to be filled in: ${hidden.map((name) => JSON.stringify(name)).join(", ")}`];
  const body = `-d ${shellWord(writeJson(message, 2))}`;
  const url = shellWord(`${address}${query}`);
  if (call.era === "modern") return [...note, `curl -N ${url} ${lines(JSON_AND_EVENTS, modernHeaders(call, message, sent), [body])}`].join("\n");
  return [...note, ...session(call, url), `curl -N "$U" ${lines(["$H", '-H "Mcp-Session-Id: $S"', ...routed(sent)], [body])}`].join("\n");
}

const lines = (...groups: readonly (readonly string[])[]) => `\\\n  ${groups.filter((each) => each.length > 0).map((each) => each.join(" ")).join(" \\\n  ")}`;

/** The call as a message, where that one is not at hand; null where its arguments were cut. */
function madeAgain(call: CallRow): object | null {
  if (at(call.arguments, "cut") !== undefined) return null;
  const meta = {
    ...(call.progress_token !== null && { progressToken: call.progress_token }),
    ...(call.era === "modern" && {
      [`${META}/protocolVersion`]: call.revision,
      [`${META}/clientInfo`]: { name: call.client_name, version: call.client_version },
      [`${META}/clientCapabilities`]: {},
    }),
  };
  const params = { name: call.tool, arguments: call.arguments, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
  return { jsonrpc: "2.0", id: call.request_id, method: "tools/call", params };
}

type Headers = readonly (readonly string[])[];

/** Those that name what the message says; a client that left one out or wrote another one is repeated exactly. */
function modernHeaders(call: CallRow, message: unknown, sent: Headers): readonly string[] {
  const routing = routed(sent);
  if (sent.length > 0) return routing;
  const name = at(message, "params", "name");
  return [`-H ${shellWord(`MCP-Protocol-Version: ${call.revision || MODERN}`)}`, "-H Mcp-Method:tools/call", `-H ${shellWord(`Mcp-Name: ${String(name)}`)}`];
}

const ROUTING = /^(mcp-(?!session-id)|authorization$)/;

function routed(sent: Headers): readonly string[] {
  return sent.filter(([name = ""]) => ROUTING.test(name)).map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`);
}

/** Opens a session, whose id is then `$S`. */
function session(call: CallRow, url: string): readonly string[] {
  const client = { name: call.client_name, version: call.client_version };
  const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: call.revision, capabilities: {}, clientInfo: client } };
  return [
    `U=${url}`,
    `H='${JSON_AND_EVENTS.join(" ")}'`,
    `S=$(curl -si "$U" $H -d ${shellWord(writeJson(initialize))} \\\n  | tr -d '\\r' | sed -n 's/^mcp-session-id: //p')`,
    `curl "$U" $H -H "Mcp-Session-Id: $S" -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'`,
  ];
}
