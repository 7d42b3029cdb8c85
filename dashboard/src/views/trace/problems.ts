import { at } from "~/protocol/json";
import type { CallSettled, Entry, HttpResponse } from "~/protocol/schema";
import { isOrderly } from "~/words/summary";

/**
 * Whose doing a problem is, as the server counts it (src/probe/views/tables/problems.py):
 * `mistake` the client's; `asked` an error that a tool gave; `lost` a message that reached nobody; `limit` a limit, a deadline
 * or a failure of the server; `other` a tool host's, or an error that a client answered, as it may.
 */
export type Problem = "mistake" | "asked" | "lost" | "limit" | "other";

// what a tool host answers to what it was told to stop: docs/tool-hosts.md, tool.cancel
const HAS_STOPPED = 2;
const BAD_OUTCOMES = new Set(["tool_error", "protocol_error", "timed_out"]);

/** Whether an entry tells of an error, a refusal, a limit, a loss or a violation, whoever caused it. */
function isProblem(entry: Entry): boolean {
  switch (entry.kind) {
    case "client.misuse":
    case "limit.reached":
    case "forwarding.missed":
    case "request.repeated":
    case "message.dropped":
    case "message.unreadable":
    case "message.refused":
    case "socket.refused":
    case "stream.lost":
    case "dispatch.expired":
    case "host.misuse":
      return true;
    case "message.received":
    case "message.emitted":
      return entry.rpc === "error" || entry.rpc === "invalid";
    case "websocket.frame":
      return entry.refused !== null;
    case "host.message":
      return (entry.rpc === "error" && at(entry.message, "error", "code") !== HAS_STOPPED) || entry.rpc === "invalid";
    case "dispatch.stopped":
      return entry.how === "unanswered" || entry.how === "host_gone";
    case "host.closed":
      return entry.failed > 0 || (entry.code !== null && !isOrderly(entry.code));
    case "connection.closed":
      return entry.code !== null && !isOrderly(entry.code);
    case "http.response":
      return entry.status >= 400 || entry.problem !== null;
    case "call.settled":
      return BAD_OUTCOMES.has(entry.outcome);
    case "task.changed":
      return entry.status === "failed";
    case "audit.state":
      return entry.state !== "ok";
    default:
      return false;
  }
}

/** Whose doing a problem is; null for what is none, and for an error without an id, whose reason is another entry. */
export function problemOf(entry: Entry): Problem | null {
  if (!isProblem(entry)) return null;
  switch (entry.kind) {
    case "client.misuse":
    case "socket.refused":
    case "websocket.frame":
      return "mistake";
    case "message.unreadable":
      return entry.fault === "syntax" || entry.fault === "encoding" ? "mistake" : entry.fault === "incomplete" ? "lost" : "limit";
    case "message.refused":
      return LIMIT_NAMES.has(entry.refusal) ? "limit" : "mistake";
    case "message.received":
      return entry.rpc === "invalid" ? "mistake" : "other";
    case "message.emitted":
      return entry.id === null ? null : ofError(at(entry.message, "error"));
    case "message.dropped":
    case "stream.lost":
      return "lost";
    case "limit.reached":
    case "forwarding.missed":
    case "dispatch.expired":
    case "audit.state":
      return "limit";
    case "task.changed":
      return "asked";
    case "call.settled":
      return ofSettled(entry);
    case "http.response":
      return ofResponse(entry);
    case "connection.closed":
      return entry.code === BROKEN ? "lost" : CLIENT_CLOSES.has(entry.code ?? 0) ? "mistake" : "limit";
    default:
      return "other";
  }
}

const LIMIT_NAMES = new Set(["REQUEST_TIMEOUT", "BODY_TOO_LARGE", "EVENTS_GONE", "TOO_MANY_REQUESTS", "BUSY"]);
const LIMIT_STATUSES = new Set([408, 410, 413, 429, 503]);
const LIMIT_CODES = new Set([-32000, 1002, 1003]);
const CLIENT_CODES = new Set([-32700, -32600, -32601, -32602, -32002, -32020, -32021, -32022, 1004]);
// RFC 6455, section 7.4.1
const BROKEN = 1006;
const CLIENT_CLOSES = new Set([1002, 1003, 1007, 1008, 1010]);

function ofError(error: unknown): Problem {
  const message = at(error, "message");
  if (typeof message === "string" && message.startsWith("Simulated ")) return "asked";
  const code = Number(at(error, "code"));
  if (LIMIT_CODES.has(code)) return "limit";
  return CLIENT_CODES.has(code) ? "mistake" : "asked";
}

const OF_OUTCOME: Readonly<Record<string, Problem>> = { tool_error: "asked", timed_out: "limit" };

function ofSettled({ outcome, result }: CallSettled): Problem {
  return OF_OUTCOME[outcome] ?? ofError(at(result, "error"));
}

function ofResponse({ status, refusal }: HttpResponse): Problem {
  return status >= 500 || LIMIT_STATUSES.has(status) || LIMIT_NAMES.has(refusal ?? "") ? "limit" : "mistake";
}
