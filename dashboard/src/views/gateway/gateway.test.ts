import { expect, test } from "vitest";
import { gatewayEntry, gatewayExchange, gatewayFinding, gatewayReport, gatewayTrial } from "~/testing/reports";
import { withOwnProbe, withThisProbe } from "./gateway-view";
import { countsOf, exchangesOf, forMaker, pairOf, pairsOf, parseRun, sentenceOf, traceOf } from "./run";

const damaged = (change: (report: Record<string, unknown>) => void) => {
  const report = structuredClone(gatewayReport([gatewayFinding("stream.late")])) as unknown as Record<string, unknown>;
  change(report);
  return () => parseRun(JSON.stringify(report), "run.json");
};

test("a run is read as it is", () => {
  const report = gatewayReport([gatewayFinding("stream.late")]);
  expect(parseRun(JSON.stringify(report), "run.json")).toEqual(report);
});

test("what is no run is refused in one line that says why", () => {
  expect(() => parseRun("{", "a.zip")).toThrow(/^a\.zip is no JSON\. Make a run with .*--format json/);
  for (const text of ["null", "[]", '"text"', '{"format":"har"}']) expect(() => parseRun(text, "a.json")).toThrow("a.json is JSON, but no run of mcp-probe gateway");
  expect(damaged((report) => (report["version"] = 3))).toThrow("run.json has version 3 of the format; this page reads version 2.");
  expect(damaged((report) => (report["findings"] = {}))).toThrow("run.json is damaged: findings should be a list.");
  expect(damaged((report) => delete report["log"])).toThrow("run.json is damaged: log should be an object.");
  const trials = [gatewayTrial("direct"), { ...gatewayTrial("through"), exchanges: [{ ...gatewayExchange(), status: "200" }] }];
  expect(damaged((report) => (report["trials"] = trials))).toThrow("run.json is damaged: trials[1].exchanges[0].status should be number or null.");
});

test("the conclusion names the worst and leaves out what was accepted", () => {
  const [broken, degraded, same] = [gatewayFinding("a", { verdict: "broken" }), gatewayFinding("b", { verdict: "degraded" }), gatewayFinding("c")];
  expect(sentenceOf(gatewayReport([broken, degraded, same]))).toBe("HAProxy breaks 1 part of the protocol and limits 1.");
  expect(sentenceOf(gatewayReport([{ ...broken, allowed: true }, degraded], { product: null }))).toBe("The gateway breaks nothing, and limits 1 part of the protocol.");
  expect(sentenceOf(gatewayReport([same]))).toBe("HAProxy passes on all of the protocol that was checked.");
  expect(sentenceOf(gatewayReport([gatewayFinding("d", { verdict: "unclear" })]))).toMatch(/1 part could not\.$/);
  expect(countsOf([same, broken, same])).toBe("1 broken, 2 the same");
});

test("the text for the maker has both measurements in a table that holds", () => {
  const text = forMaker(gatewayFinding("headers.lost", { verdict: "changed", through: "a | b\nc" }), gatewayReport([]));
  expect(text).toContain("### headers.lost: what headers.lost is about");
  expect(text).toContain("| without the gateway | 0 ms |");
  expect(text).toContain(String.raw`| through the gateway | a \| b c |`);
  expect(text).not.toContain("Remedy");
  const hints = [{ product: null, lines: ["send at once"] }, { product: "nginx", lines: ["first;", "second;"] }];
  expect(forMaker(gatewayFinding("stream.late", { hints }), gatewayReport([]))).toContain("Remedy:\n\n- send at once\n- nginx: `first;` `second;`\n");
});

test("the trials of a finding are paired by step and turn", () => {
  const again = [gatewayTrial("through", { turn: 2 }), gatewayTrial("direct", { step: "get" })];
  const report = gatewayReport([], { trials: [gatewayTrial("direct"), gatewayTrial("through"), ...again] });
  const pairs = pairsOf(gatewayFinding("x", { trials: [0, 1, 2, 3, 99] }), report);
  expect(pairs.map(({ step, turn, direct, through }) => [step, turn, direct?.way, through?.way])).toEqual([
    ["progress.legacy", 1, "direct", "through"],
    ["progress.legacy", 2, undefined, "through"],
    ["get", 1, "direct", undefined],
  ]);
  expect(pairOf("progress.legacy", 1, report)?.through?.entries[0]?.seq).toBe(34);
  expect(pairOf("progress.legacy", 3, report)).toBeUndefined();
});

test("what both ends saw stands in one order, by one clock", () => {
  const { seen, oneClock } = traceOf(gatewayTrial("through", { moments: { "closed here": 1000.3 } }));
  expect(oneClock).toBe(true);
  expect(seen.map(({ end, what, offset }) => [end, what, Math.round(offset)])).toEqual([
    ["client", "POST call", 0],
    ["probe", "message.emitted", 1],
    ["client", "200", 200],
    ["client", "notifications/progress", 200],
    ["client", "closed here", 300],
    ["client", "result", 400],
    ["client", "complete", 400],
  ]);
});

test("where the clocks differ, the probe's times count from its own first entry", () => {
  const entries = [gatewayEntry(1, { at: 5000 }), gatewayEntry(2, { at: 5000.01 })];
  const { seen, oneClock } = traceOf(gatewayTrial("direct", { entries }));
  expect(oneClock).toBe(false);
  expect(seen.filter(({ end }) => end === "probe").map(({ offset }) => Math.round(offset))).toEqual([0, 10]);
});

test("a difference is marked, another time is none, and an exchange of one way alone is said so", () => {
  const other = gatewayExchange({ status: 502, content_type: null }, 0.3);
  const pair = { step: "x", turn: 1, direct: gatewayTrial("direct"), through: gatewayTrial("through", { exchanges: [other, gatewayExchange({ name: "more" })] }) };
  const [[, lines] = ["", []], [name, alone] = ["", []]] = exchangesOf(pair);
  expect(lines.filter(({ differs }) => differs).map(({ name: what, direct, through }) => [what, direct, through])).toEqual([
    ["Status", "200", "502"],
    ["Content-Type", "text/event-stream", "none"],
  ]);
  expect(lines.find((line) => line.name === "First message after")?.through).toBe("300 ms");
  expect(name).toBe("more");
  expect(alone[0]).toEqual({ name: "Status", direct: "not made", through: "200", differs: true });
});

test("the check gets a port that the server itself does not use, and words of the shell", () => {
  expect(withOwnProbe("http://127.0.0.1:8100", "http://127.0.0.1:8080/mcp")).toEqual({
    port: 8101,
    command: "mcp-probe gateway --listen 8101 --through http://127.0.0.1:8080/mcp --format json --out run.json",
  });
  expect(withOwnProbe("https://probe.example", "http://a/mcp?x=1&y=2").command).toContain("--listen 8001 --through 'http://a/mcp?x=1&y=2' ");
  expect(withThisProbe("http://127.0.0.1:8100", "http://127.0.0.1:8080/mcp")).toContain("--probe http://127.0.0.1:8100 --through");
});
