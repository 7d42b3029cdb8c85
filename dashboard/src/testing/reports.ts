import type { GatewayEntry, GatewayExchange, GatewayFinding, GatewayReport, GatewayTrial, JudgedRule, JudgedSubject, JudgeReport, RuleInfo } from "~/protocol/schema";

/** A rule that failed once of two times, with one entry behind it. */
export function judgedRule(more: Partial<JudgedRule> = {}): JudgedRule {
  const { verdict = "FAIL", remark = "two pings without an answer" } = more;
  return {
    rule: "ping.answered",
    title: "Answers ping",
    fault: "Ping is not answered",
    kind: "absence",
    level: "must",
    verdict,
    count: verdict === "NOT_OBSERVED" ? 0 : 2,
    counts: verdict === "NOT_OBSERVED" ? {} : { [verdict]: 1 },
    evidence: verdict === "NOT_OBSERVED" ? [] : [7],
    breaches: more.evidence ?? (verdict === "FAIL" || verdict === "WARN" ? [7] : []),
    remark: verdict === "NOT_OBSERVED" ? "" : remark,
    examples: verdict === "NOT_OBSERVED" ? [] : [{ verdict, entries: [7], remark }],
    at: verdict === "NOT_OBSERVED" ? {} : { "2025-11-25": verdict },
    measured: {},
    ...more,
  };
}

/** A client with these verdicts, counted. */
export function judgedSubject(verdicts: readonly JudgedRule[], more: Partial<JudgedSubject> = {}): JudgedSubject {
  const names = ["FAIL", "WARN", "INCONCLUSIVE", "PASS", "NOT_OBSERVED"] as const;
  return {
    label: "acme",
    kind: "label",
    conclusion: "breaks 1 MUST rule of 2025-11-25; 4 of 5 rules exercised",
    names: [{ name: "agent", version: "1.2" }],
    revisions: ["2025-11-25"],
    transports: ["http"],
    capabilities: {},
    several: null,
    whole: true,
    requests: 12,
    sessions: 1,
    verdict: "FAIL",
    summary: Object.fromEntries(names.map((name) => [name, verdicts.filter(({ verdict }) => verdict === name).length])),
    verdicts: [...verdicts],
    out_of_reach: [],
    measured: {},
    ...more,
  };
}

export function judgeReport(subjects: readonly JudgedSubject[], more: Partial<JudgeReport> = {}): JudgeReport {
  return {
    format: "mcp-probe-judge",
    version: 1,
    program: "0",
    catalogue: { version: 1, sha256: "", rules: 2 },
    logs: [{ run: "run", program: "0", offset: 0, last: 9, whole: true, cut_off: false, gaps: [] }],
    subjects: [...subjects],
    forgotten: 0,
    broken: {},
    not_visible: ["what the client logs"],
    ...more,
  };
}

/** A rule of the catalogue for all revisions. */
export function ruleInfo(more: Partial<RuleInfo> = {}): RuleInfo {
  return {
    rule: "ping.answered",
    title: "Answers ping",
    fault: "Ping is not answered",
    revisions: ["2025-03-26", "2025-06-18", "2025-11-25"],
    transports: ["http", "stdio", "websocket"],
    level: "must",
    level_at: {},
    worst: "FAIL",
    kind: "absence",
    spec: [
      { doc: "2025-06-18/basic/utilities/ping.md", text: "The older sentence", role: "demands", word: "MUST", link: "https://spec.example/2025-06-18" },
      { doc: "2025-11-25/basic/utilities/ping.md", text: "The receiver MUST respond promptly", role: "demands", word: "MUST", link: "https://spec.example/2025-11-25" },
    ],
    observe: "a ping was delivered",
    passes: "an answer to its id",
    fails: "no answer",
    silent: "no ping",
    provoke: "ping_client",
    needs_drill: false,
    risk: "",
    docs: null,
    official_id: "",
    bugs: [
      { ref: "vercel/ai#15701", about: "pings are not answered", link: "https://github.com/vercel/ai/issues/15701" },
      { ref: "a forum", about: "likewise", link: null },
    ],
    ...more,
  };
}

/** What `/api/server` says of a server that judges, or of one that does not. */
export const serverThat = (judges: boolean) => ({ run: "run", mcp: "http://probe.example/mcp", settings: [{ name: "judge", value: judges }], toolsets: [{ name: "probe", default: true, tools: [] }] });

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
