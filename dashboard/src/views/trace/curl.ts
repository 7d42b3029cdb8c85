import { writeJson } from "~/protocol/json";
import type { Entry, HttpRequest } from "~/protocol/schema";
import { shellWord } from "~/words/shell-word";

// what curl makes itself, or what belongs to the connection of then
const OWN = new Set(["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "accept-language", "sec-fetch-mode", "keep-alive", "te", "upgrade"]);

/**
 * The command that sends an HTTP request again: its headers as they were received, and the messages of its body.
 *
 * What the log does not keep (secrets, and all but the beginning of a session id) is a variable of the shell, named after the header.
 */
export function curlOf(request: HttpRequest, exchange: readonly Entry[], base: string): string {
  const address = `${base}${request.path}${request.query === "" ? "" : `?${request.query}`}`;
  const headers = request.headers.filter(([name = ""]) => !OWN.has(name.toLowerCase()));
  const lines = [
    `curl -N ${request.method === "POST" ? "" : `-X ${shellWord(request.method)} `}${shellWord(address)}`,
    ...headers.map(([name = "", value = ""]) => `  -H ${isHidden(request, name, value) ? `${shellWord(`${name}: `)}"$${variable(name)}"` : shellWord(`${name}: ${value}`)}`),
  ];
  const body = bodyOf(exchange);
  return [...lines, ...(body === null ? [] : [`  --data-raw ${shellWord(body)}`])].join(" \\\n");
}

function isHidden({ hidden }: HttpRequest, name: string, value: string): boolean {
  return hidden.some((each) => each.toLowerCase() === name.toLowerCase()) || (name.toLowerCase() === "mcp-session-id" && value.endsWith("…"));
}

const variable = (name: string) => name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");

function bodyOf(exchange: readonly Entry[]): string | null {
  const received = exchange.filter((entry) => entry.kind === "message.received");
  const [first] = received;
  if (first === undefined) return null;
  return writeJson(first.batch === null ? first.message : received.map(({ message }) => message));
}
