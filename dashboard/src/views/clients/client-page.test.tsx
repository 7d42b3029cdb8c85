import { beforeEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import type { JudgedRule } from "~/protocol/schema";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { judgedRule, judgedSubject, judgeReport, ruleInfo, serverThat } from "~/testing/reports";
import { callRow, countsRow, entryOf, refusalRow, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { JudgedProvider } from "~/trace/findings";
import ClientsView from "./clients-view";

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
const MISUSE = { seq: 7, at: 1_795_258_465, mono: 1, cause: null, kind: "client.misuse", session: "s1", exchange: 3, what: "cancellation without effect", clause: "2025-11-25 basic/utilities/cancellation", detail: "request 99 is unknown" };

let verdicts: readonly JudgedRule[];
let judges: boolean;
let noted: readonly object[];

beforeEach(() => {
  verdicts = VERDICTS;
  judges = true;
  noted = [MISUSE];
});

async function opened(path = "/acme", rows: readonly object[] = [sessionRow({ label: "acme" })]) {
  const asked = answerApi((at, query) => {
    if (at === "/api/server") return serverThat(judges);
    if (at === "/api/tools") return { tools: [{ name: "sampling_demo", toolset: "features" }] };
    if (at === "/api/judge/rules") return { version: 1, sha256: "", rules: RULES };
    if (at === "/api/events/7") return entryOf(7, 0, "message.received", { rpc: "request", method: "ping", id: 3, message: {} });
    if (at === "/api/events") return { run: "run", gap: null, last: 9, next: null, events: query.get("kind") === "client.misuse" ? noted : [] };
    const subject = judgedSubject(verdicts);
    if (at === "/api/judge") return judgeReport([{ ...subject, verdicts: subject.verdicts.filter(({ verdict }) => query.get("verdict")?.includes(verdict)) }]);
    return at === "/api/judge/acme" ? judgeReport([subject]) : undefined;
  });
  const view = await openView(ClientsView, "/clients/:id?", `/clients${path}`, JudgedProvider);
  view.show({ sessions: rows, counts: [countsRow()] }, "run");
  return { ...view, asked };
}

test("the page begins with the verdict in a sentence and its figures", async () => {
  await opened();
  const conclusion = page.getByRole("region", { name: "Conclusion" });
  await expect.element(conclusion).toMatchTextContent(/^acme breaks 1 MUST rule of 2025-11-25; 4 of 5 rules exercised\.agent 1\.2; 2025-11-25 over http; 12 requests, 1 session; last message .*broken1warning1inconclusive1passed1not exercised1/);
  await expect.poll(() => document.title).toBe("acme · MCP Probe");
  await inBothThemes(() => expectAccessible());
});

test("findings stand the worst first, the first one open and the others folded", async () => {
  await opened();
  await expect.element(page.getByText("two pings without an answer", { exact: true })).toBeVisible();
  const findings = [...document.querySelectorAll<HTMLDetailsElement>("details[id]")].map(({ id, open }) => [id, open]);
  expect(findings).toEqual([["ping.answered", true], ["http.post-accept", false], ["cancel.unclear", false]]);
});

const openOnes = () => [...document.querySelectorAll<HTMLDetailsElement>("details[id]")].map(({ open }) => open);

test("on paper all findings are open, and no more behind it", async () => {
  await opened();
  await expect.element(page.getByText("two pings without an answer", { exact: true })).toBeVisible();
  dispatchEvent(new Event("beforeprint"));
  expect(openOnes()).toEqual([true, true, true]);
  dispatchEvent(new Event("afterprint"));
  await expect.poll(openOnes).toEqual([true, false, false]);
});

test("a finding has what was found and expected, how often, its sentence at the revision spoken, its evidence, and who had it", async () => {
  await opened();
  const finding = page.getByRole("listitem").filter({ hasText: "ping.answered" }).first();
  await expect.element(finding).toMatchTextContent(/✗Ping is not answeredMUST, broken in 1 of 2 checksFoundtwo pings without an answerExpectedan answer to its idRuleAnswers ping ping\.answeredA check isa ping was delivered/);
  await expect.element(page.getByRole("link", { name: "2025-11-25/basic/utilities/ping.md" }).first()).toHaveAttribute("href", "https://spec.example/2025-11-25");
  expect(document.body.textContent).not.toMatch(/The older sentence/);
  await expect.element(page.getByRole("link", { name: "#7" }).first()).toHaveAttribute("href", "/dashboard/trace?at=run-7");
  await expect.element(page.getByText(/ping request · id 3/).first()).toBeVisible();
  await expect.element(page.getByRole("link", { name: "vercel/ai#15701" }).first()).toHaveAttribute("href", "https://github.com/vercel/ai/issues/15701");
  await expect.element(page.getByText("a forum: likewise").first()).toBeVisible();
});

test("the finding that the address names is open and has the focus", async () => {
  await opened("/acme#http.post-accept");
  await expect.element(page.getByText("Accept names one", { exact: true })).toBeVisible();
  await expect.poll(() => document.activeElement?.closest("details")?.id).toBe("http.post-accept");
});

test("the table by feature has the revisions that the client spoke, and no other", async () => {
  await opened();
  const table = page.getByRole("table", { name: "By feature and revision" });
  await expect.element(table.getByRole("row", { name: "Ping ✗ failed 1 of 1" })).toBeInTheDocument();
  expect(table.getByRole("columnheader").elements().map(({ textContent }) => textContent)).toEqual(["Rules about", "2025-11-25"]);
});

test("what to try next has a call and a prompt to copy", async () => {
  const written: string[] = [];
  vi.spyOn(navigator.clipboard, "writeText").mockImplementation(async (text) => void written.push(text));
  await opened();
  await expect.element(page.getByRole("heading", { name: "What to try next: 1 rule not observed" })).toBeInTheDocument();
  await page.getByRole("button", { name: "Copy call" }).click();
  await page.getByRole("button", { name: "Copy prompt" }).click();
  expect(written[0]).toBe('{"name":"sampling_demo","arguments":{}}');
  expect(written[1]).toMatch(/sampling_demo/);
  await expect.element(page.getByRole("group", { name: "Or connect it here under its name" })).toMatchTextContent("http://probe.example/mcp?client=acme");
  // its toolset is not served by default
  await expect.element(page.getByText("?tools=features")).toBeInTheDocument();
});

test("a rule that becomes decided while the page is open is marked, and what was decided before is not", async () => {
  // the judge of a hidden page is asked again after half a minute, unless the log has grown
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  const { show, asked } = await opened();
  const news = page.getByRole("status", { name: "Decided just now" });
  await expect.element(page.getByRole("heading", { name: /^Findings/ })).toBeInTheDocument();
  verdicts = [...VERDICTS.slice(0, -1), judgedRule({ rule: "sampling.answered", title: "Answers sampling", verdict: "PASS", count: 1 })];
  const before = asked.filter((url) => url === "/api/judge/acme").length;
  show({ counts: [countsRow({ last: 101 })] });
  show({ counts: [countsRow({ last: 102 })] });
  await expect.poll(() => news.element().textContent, { timeout: 20_000 }).toContain("✓ Answers sampling: passed");
  await expect.element(page.getByText("Answers sampling 1 check, decided just now")).toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
  // the log grew twice within a second
  expect(asked.filter((url) => url === "/api/judge/acme").length).toBe(before + 1);
});

test("without a judge the page says how to switch it on, has what the client did, and asks for no verdict", async () => {
  judges = false;
  const { asked } = await opened();
  await expect.element(page.getByText(/Judging is off/)).toMatchTextContent(/--no-judge/);
  await expect.element(page.getByRole("heading", { name: "Sessions: 1" })).toBeInTheDocument();
  expect(asked.filter((url) => url.startsWith("/api/judge"))).toEqual([]);
  await inBothThemes(() => expectAccessible());
});

test("a session of a client with a name leads to the page of that client, at the session", async () => {
  await opened("/s2", [sessionRow({ label: "acme", opened_at: 10 }), sessionRow({ id: "s2", label: "acme", opened_at: 5 })]);
  await expect.poll(() => location.pathname + location.search).toBe("/dashboard/clients/acme?session=s2");
  await expect.element(page.getByRole("heading", { name: "What s2 has exercised" })).toBeInTheDocument();
});

test("a client that is not known is said to be so", async () => {
  await opened("/nobody");
  await expect.element(page.getByRole("heading", { name: "No such client" })).toBeVisible();
});

test("the sessions of a client are listed, and what one of them did is below", async () => {
  const one = sessionRow({ label: "acme", misuse: 1, opened_at: 10, methods: { "tools/list": 1 }, skills: { "skill://a/SKILL.md": 2 }, capabilities: { elicitation: { form: {} } } });
  const other = sessionRow({ id: "s2", label: "acme", opened_at: 20, closed: "deleted", transport: "websocket" });
  const { show, asked } = await opened("/acme", [one, other]);
  show({ calls: [callRow({ label: "acme" }), callRow({ call: "c2", session: "s2" })] });
  await expect.element(page.getByRole("row", { name: /^s2 2025-11-25 over websocket closed: deleted/ })).toBeInTheDocument();
  await expect.element(page.getByRole("heading", { name: "What s2 has exercised" })).toBeInTheDocument();
  await page.getByRole("link", { name: "s1" }).click();
  expect(location.search).toBe("?session=s1");
  await expect.element(page.getByRole("row", { name: /request 99 is unknown 2025-11-25 basic/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Tools listed ✓ 1×/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Progress: token sent ✓ 1×/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Skills read ✓ 2×/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^skill:\/\/a\/SKILL.md 2/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Sampling not yet not declared call sampling_demo/ })).toBeInTheDocument();
  expect(asked.some((url) => url.includes("session=s1") && url.includes("kind=client.misuse"))).toBe(true);
  await inBothThemes(() => expectAccessible());
});

test("what the server noted has no number of its own beside the judge's, and says whether it is a finding", async () => {
  noted = [{ ...MISUSE, seq: 8, cause: 7, detail: "id 4 of ping" }, { ...MISUSE, seq: 10, cause: 9 }];
  await opened("/acme", [sessionRow({ label: "acme", misuse: 2 })]);
  const part = page.getByRole("region", { name: "Noted by the server" });
  await expect.element(part.getByRole("row", { name: /^.* id 4 of ping .* ✗ ping.answered$/ })).toBeInTheDocument();
  await expect.element(part.getByRole("row", { name: /^.* request 99 is unknown .* none$/ })).toBeInTheDocument();
  expect(document.body.textContent).not.toMatch(/violation/i);
  expect(page.getByRole("table", { name: "Sessions" }).element().textContent).not.toMatch(/noted/i);
});

test("without a judge, what was noted has no column of findings", async () => {
  judges = false;
  await opened("/acme", [sessionRow({ label: "acme", misuse: 1 })]);
  await expect.element(page.getByRole("row", { name: /request 99 is unknown 2025-11-25 basic\S+$/ })).toBeInTheDocument();
});

const declares = (seq: number, capabilities: object) =>
  entryOf(seq, seq, "message.received", { session: "m1", rpc: "request", method: "tools/call", id: seq, message: { params: { _meta: { "io.modelcontextprotocol/clientCapabilities": capabilities } } } });

test("the capabilities of a client of 2026-07-28 are those of all its requests, with how many declared each", async () => {
  const row = sessionRow({ id: "m1", era: "modern", revision: "2026-07-28" });
  const { show } = await opened("/m1", [row]);
  answerApi((path, query) => {
    if (path !== "/api/events") return undefined;
    const events = query.get("kind") === "message.received" ? [declares(3, {}), declares(2, {}), declares(1, { sampling: {} })] : [];
    return { run: "run", gap: null, events, next: null, last: 3 };
  });
  show({ sessions: [{ ...row, requests: 9, capabilities: {} }] });
  await expect.element(page.getByRole("region", { name: "Declared capabilities" })).toMatchTextContent(/samplingin 1 of 3 requests.*Its 3 requests differ/);
  await expect.element(page.getByRole("row", { name: /^Sampling not yet declared/ })).toBeInTheDocument();
});

test("refused requests are listed with links to the log; what a row counts is not listed again", async () => {
  const { show } = await opened("/s2", [sessionRow({ id: "s2", requests: 7, refused: 2 })]);
  show({ refusals: [refusalRow({ id: "41", session: "s2" }), refusalRow({ id: "42", session: "s1" })] });
  const refused = page.getByRole("region", { name: "Refused requests" });
  await expect.element(refused.getByRole("table", { name: "Refused requests: 2, newest first" })).toBeVisible();
  await expect.element(refused.getByRole("row", { name: /tools\/call: HTTP 400, -32020, Header mismatch: Mcp-Name/ })).toBeVisible();
  expect(refused.getByRole("link").elements().map((link) => link.getAttribute("href"))).toEqual(["/dashboard/trace?at=41"]);
  await expect.element(refused.getByText(/^1 more are not listed/)).toBeVisible();
});

test("what has no known client has what was refused and noted, and no sessions", async () => {
  const unattributed = sessionRow({ id: "unattributed", era: null, transport: null, revision: "", client_name: "", client_version: "", requests: 0, refused: 1, misuse: 1 });
  const { show } = await opened("/unattributed", [sessionRow(), unattributed]);
  show({ refusals: [refusalRow({ session: null, method: null, code: -32700, message: "Parse error" }), refusalRow({ id: "10" })] });
  await expect.element(page.getByRole("heading", { name: "Unattributed traffic" })).toBeVisible();
  await expect.element(page.getByRole("row", { name: /unreadable request: HTTP 400, -32700, Parse error/ })).toBeInTheDocument();
  expect(document.body.textContent).not.toMatch(/Sessions: |exercised/);
  await inBothThemes(() => expectAccessible());
});

test.each([390, 768, 1440])("the page of a client is accessible in light and dark and fits a width of %i", async (width) => {
  await page.viewport(width, 800);
  await opened();
  await expect.element(page.getByText(/ping request · id 3/).first()).toBeVisible();
  await inBothThemes(() => expectAccessible());
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(width);
});

test("the server is asked what it is once for all parts of the page", async () => {
  const { asked } = await opened();
  await expect.element(page.getByRole("heading", { name: /^What to try next/ })).toBeInTheDocument();
  expect(asked.filter((each) => each === "/api/server")).toHaveLength(1);
});
