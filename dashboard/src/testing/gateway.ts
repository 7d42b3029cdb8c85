import type { GatewayEntry, GatewayExchange, GatewayFinding, GatewayReport, GatewayTrial } from "~/protocol/schema";

/** The client's end of a request that was answered after `late` seconds. */
export function gatewayExchange(more: Partial<GatewayExchange> = {}, late = 0): GatewayExchange {
  const at = 1000 + late;
  const arrived = [{ at, event_id: null, size: 90, what: "notifications/progress" }, { at: at + 0.2, event_id: null, size: 120, what: "result" }];
  const times = { began: 1000, head_at: at, ended: at + 0.2 };
  const head = { name: "call", protocol: "HTTP/1.1", method: "POST", status: 200, content_type: "text/event-stream", framing: "chunked" };
  return { ...head, ...times, messages: arrived.length, arrived, comments: 0, body: "", faults: [], end: "complete", problem: "", ...more };
}

export function gatewayEntry(seq: number, more: Partial<GatewayEntry> = {}): GatewayEntry {
  return { seq, at: 1000.001, kind: "message.emitted", connection: "tcp1", exchange: 4, session: "s1", call: "c1", what: "notifications/progress", ...more };
}

export function gatewayTrial(way: "direct" | "through", more: Partial<GatewayTrial> = {}): GatewayTrial {
  const exchanges = [gatewayExchange({}, way === "direct" ? 0 : 0.2)];
  const entries = [gatewayEntry(way === "direct" ? 12 : 34)];
  return { step: "progress.legacy", phase: "time", way, turn: 1, mark: 1000, skipped: "", moments: {}, calls: ["c1"], exchanges, exchanges_made: 1, entries, entries_seen: 1, ...more };
}

export function gatewayFinding(name: string, more: Partial<GatewayFinding> = {}): GatewayFinding {
  const said = { title: `what ${name} is about`, direct: "0 ms", through: "202 ms", evidence: "24 messages", hints: [] };
  return { name, fault: 1, phase: "time", steps: [], severity: "C", verdict: "same", allowed: false, calls: {}, trials: [0, 1], ...said, ...more };
}

/** A run with these findings, which all rest on one step of both ways. */
export function gatewayReport(findings: readonly GatewayFinding[], more: Partial<GatewayReport> = {}): GatewayReport {
  const trials = [gatewayTrial("direct"), gatewayTrial("through")];
  const about = { format: "mcp-probe-gateway", version: 2, program: "0.1.0", started_at: 1000, profile: "quick", partial: "", product: "HAProxy" };
  const ways = { direct: "http://127.0.0.1:8000/mcp", through: "http://127.0.0.1:8080/mcp", offers: {} };
  return { ...about, ...ways, log: { api: "http://127.0.0.1:8000/api", run: "abc" }, summary: {}, findings: [...findings], trials, ...more };
}
