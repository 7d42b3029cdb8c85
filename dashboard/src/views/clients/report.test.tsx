import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import type { JudgedRule } from "~/protocol/schema";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { judgeReport, judgedRule, judgedSubject, ruleInfo, serverThat } from "~/testing/judged";
import { countsRow, entry, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { JudgedProvider } from "~/trace/use-judged";
import ReportView from "./report-view";

const RULES = [
  ruleInfo(),
  ruleInfo({ rule: "http.post-accept", title: "Accepts both types", bugs: [] }),
  ruleInfo({ rule: "cancel.unclear", title: "Cancels its own requests" }),
  ruleInfo({ rule: "progress.token", title: "Asks for progress", provoke: "passive" }),
  ruleInfo({ rule: "sampling.answered", title: "Answers sampling", provoke: "sampling_demo", observe: "sampling was asked" }),
];
const VERDICTS = [
  judgedRule({ rule: "http.post-accept", title: "Accepts both types", verdict: "WARN", remark: "Accept names one" }),
  judgedRule(),
  judgedRule({ rule: "cancel.unclear", title: "Cancels its own requests", verdict: "INCONCLUSIVE", remark: "entries are missing" }),
  judgedRule({ rule: "progress.token", title: "Asks for progress", verdict: "PASS" }),
  judgedRule({ rule: "sampling.answered", title: "Answers sampling", verdict: "NOT_OBSERVED" }),
];
const TOOLS = [{ name: "sampling_demo", toolset: "features" }];

let verdicts: readonly JudgedRule[];
let judges: boolean;

beforeEach(async () => {
  verdicts = VERDICTS;
  judges = true;
  await page.viewport(1280, 800);
});
afterEach(() => vi.restoreAllMocks());

async function opened(path: string) {
  const asked = answerApi((at, query) => {
    if (at === "/api/server") return serverThat(judges);
    if (at === "/api/tools") return { tools: TOOLS };
    if (at === "/api/judge/rules") return { version: 1, sha256: "", rules: RULES };
    if (at === "/api/events/7") return entry(7, 0, "message.received", { rpc: "request", method: "ping", id: 3, message: {} });
    const subject = judgedSubject(verdicts);
    if (at === "/api/judge") return judgeReport([{ ...subject, verdicts: subject.verdicts.filter(({ verdict }) => query.get("verdict")?.includes(verdict)) }]);
    return at === "/api/judge/acme" ? judgeReport([subject]) : undefined;
  });
  const view = await openView(ReportView, "/report/:client?", `/report${path}`, JudgedProvider);
  view.show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  return { ...view, asked };
}

test("all judged clients are listed with what was not observed", async () => {
  await opened("");
  await expect.element(page.getByRole("link", { name: "acme" })).toHaveAttribute("href", "/dashboard/report/acme");
  const client = page.getByRole("list", { name: "Judged clients" });
  await expect.element(client).toMatchTextContent(/✗ 1 failed.*! 1 warned.*✓ 1 passed.*· 1 not observed/);
  await expect.poll(() => document.title).toBe("Reports · MCP Probe");
  await inBothThemes(() => expectAccessible());
});

test("a report has the counts, what was not observed in grey, and the findings, the worst first", async () => {
  await opened("/acme");
  const tiles = page.getByRole("list", { name: "1 failed, 1 warned, 1 inconclusive, 1 passed, 1 not observed" });
  await expect.element(tiles).toBeVisible();
  const grey = tiles.getByRole("listitem").last().element();
  expect(grey.textContent).toMatch(/1not observed$/);
  expect(grey.className).not.toMatch(/good/);
  const findings = [...document.querySelectorAll("details[id]")].map(({ id }) => id);
  expect(findings).toEqual(["ping.answered", "http.post-accept", "cancel.unclear"]);
  await expect.poll(() => document.title).toBe("Report on acme · MCP Probe");
});

test("a finding has its sentence at the revision spoken, its evidence, what is right, and who had it", async () => {
  await opened("/acme");
  await expect.element(page.getByText("two pings without an answer", { exact: true })).toBeVisible();
  await expect.element(page.getByRole("link", { name: "2025-11-25/basic/utilities/ping.md" })).toHaveAttribute("href", "https://spec.example/2025-11-25");
  expect(document.body.textContent).not.toMatch(/The older sentence/);
  await expect.element(page.getByRole("link", { name: "#7" }).first()).toHaveAttribute("href", "/dashboard/live?at=run-7");
  await expect.element(page.getByText(/ping request · id 3/)).toBeVisible();
  await expect.element(page.getByText("an answer to its id")).toBeVisible();
  await expect.element(page.getByRole("link", { name: "vercel/ai#15701" })).toHaveAttribute("href", "https://github.com/vercel/ai/issues/15701");
  await expect.element(page.getByText("a forum: likewise")).toBeVisible();
  await expect.element(page.getByRole("link", { name: "Card to print or attach" })).toHaveAttribute("href", "/api/judge/acme/card");
  await expect.element(page.getByRole("link", { name: "JUnit" })).toHaveAttribute("href", "/api/judge/acme/junit");
});

test("the finding that the address names is open and has the focus", async () => {
  await opened("/acme#http.post-accept");
  await expect.element(page.getByText("Accept names one", { exact: true })).toBeVisible();
  await expect.poll(() => document.activeElement?.closest("details")?.id).toBe("http.post-accept");
});

test("the matrix says for each revision what failed, what was not tried, and what it does not have", async () => {
  await opened("/acme");
  await expect.element(page.getByRole("row", { name: "ping not tried not tried ✗ failed 1 of 1 not in this revision" })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: "progress not tried not tried ✓ passed 1 of 1 not in this revision" })).toBeInTheDocument();
});

test("what to try next has a call and a prompt to copy", async () => {
  const written: string[] = [];
  vi.spyOn(navigator.clipboard, "writeText").mockImplementation(async (text) => void written.push(text));
  await opened("/acme");
  await expect.element(page.getByRole("heading", { name: "What to try next: 1 rule not observed" })).toBeInTheDocument();
  await page.getByRole("button", { name: "Copy call" }).click();
  await page.getByRole("button", { name: "Copy prompt" }).click();
  expect(written[0]).toBe('{"name":"sampling_demo","arguments":{}}');
  expect(written[1]).toMatch(/sampling_demo/);
  await expect.element(page.getByRole("group", { name: /^Any other client/ })).toMatchTextContent("http://probe.example/mcp?client=acme");
  // its toolset is not served by default
  await expect.element(page.getByText("?tools=features")).toBeInTheDocument();
});

test("a rule that becomes decided while the page is open is marked, and what was decided before is not", async () => {
  const { show, asked } = await opened("/acme");
  const news = page.getByRole("status", { name: "Decided just now" });
  await expect.element(news).toMatchTextContent("Verdicts appear here as the client works.");
  verdicts = [...VERDICTS.slice(0, -1), judgedRule({ rule: "sampling.answered", title: "Answers sampling", verdict: "PASS", count: 1 })];
  const before = asked.filter((url) => url === "/api/judge/acme").length;
  show({ counts: [countsRow({ last: 101 })] });
  show({ counts: [countsRow({ last: 102 })] });
  // without news of the log it would be asked again after five seconds
  await expect.poll(() => news.element().textContent, { timeout: 4_000 }).toContain("✓ sampling.answered passed");
  await expect.element(page.getByText("Answers sampling (1 of 1, decided just now)")).toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
  // the log grew twice within a second
  expect(asked.filter((url) => url === "/api/judge/acme").length).toBe(before + 1);
});

test("without a judge the page says how to switch it on, and asks for no verdict", async () => {
  judges = false;
  const { asked } = await opened("/acme");
  await expect.element(page.getByRole("heading", { name: "Nobody judges" })).toBeVisible();
  await expect.element(page.getByRole("group", { name: "Shell" })).toMatchTextContent("mcp-probe serve --judge");
  expect(asked.filter((url) => url.startsWith("/api/judge"))).toEqual([]);
  await inBothThemes(() => expectAccessible());
});

test("a client that was not seen is said to be so", async () => {
  await opened("/nobody");
  await expect.element(page.getByRole("heading", { name: "This client was not seen" })).toBeVisible();
});

test.each([390, 768, 1440])("a report is accessible in light and dark and fits a width of %i", async (width) => {
  await page.viewport(width, 800);
  await opened("/acme");
  await expect.element(page.getByText(/ping request · id 3/)).toBeVisible();
  await inBothThemes(() => expectAccessible());
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(width);
});

test("the server is asked what it is once for all parts of the page", async () => {
  const { asked } = await opened("/acme");
  await expect.element(page.getByRole("heading", { name: /^What to try next/ })).toBeInTheDocument();
  expect(asked.filter((each) => each === "/api/server")).toHaveLength(1);
});
