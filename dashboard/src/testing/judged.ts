import type { JudgeReport, JudgedRule, JudgedSubject, RuleInfo } from "~/protocol/schema";

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
