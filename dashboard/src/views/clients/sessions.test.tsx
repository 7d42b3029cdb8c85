import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { judgeReport, judgedRule, judgedSubject, serverThat } from "~/testing/judged";
import { callRow, entry, refusalRow, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { JudgedProvider } from "~/trace/use-judged";
import SessionsView from "./session-list";

const MISUSE = { seq: 7, at: 1_795_258_465, mono: 1, cause: null, kind: "client.misuse", session: "s1", exchange: 3, what: "cancellation without effect", clause: "2025-11-25 basic/utilities/cancellation", detail: "request 99 is unknown" };

const ROWS = [
  sessionRow({ id: "s1", client_name: "agent", misuse: 1, opened_at: 10, methods: { "tools/list": 1 }, skills: { "skill://a/SKILL.md": 2 }, capabilities: { elicitation: { form: {} } } }),
  sessionRow({ id: "s2", client_name: "editor", opened_at: 20, closed: "deleted", transport: "websocket" }),
  sessionRow({ id: "m1", client_name: "gateway", opened_at: 30, era: "modern", revision: "2026-07-28" }),
];

async function opened(path = "") {
  const asked = answerApi((_, query) => ({ run: "r", gap: null, last: 9, next: null, events: query.get("kind") === "client.misuse" ? [MISUSE] : [] }));
  const view = await openView(SessionsView, "/sessions/:id?", `/sessions${path}`);
  view.show({ sessions: ROWS, calls: [callRow({ session: "s1" }), callRow({ call: "c2", session: "s2" })] }, "run");
  return { ...view, asked };
}

beforeEach(() => page.viewport(1280, 800));
afterEach(() => vi.restoreAllMocks());

test("sessions and clients are listed, the newest first, with why they are closed", async () => {
  await opened();
  await expect.element(page.getByRole("row", { name: /s2 editor 1\.2 legacy websocket .* closed: deleted/ })).toBeVisible();
  await expect.element(page.getByRole("row", { name: /m1 gateway 1\.2 modern http 2026-07-28 .* no session/ })).toBeVisible();
  expect(page.getByRole("row").elements().slice(1).map((row) => row.textContent?.slice(0, 2))).toEqual(["m1", "s2", "s1"]);
});

test("the era filters, and the address says so", async () => {
  await opened();
  await page.getByRole("radio", { name: "Modern" }).click({ force: true });
  await expect.element(page.getByRole("row", { name: /s1/ })).not.toBeInTheDocument();
  expect(location.search).toBe("?era=modern");
});

test("the transport filters, and the address says so", async () => {
  await opened();
  await page.getByRole("radio", { name: "websocket" }).click({ force: true });
  await expect.element(page.getByRole("row", { name: /s1/ })).not.toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /s2/ })).toBeInTheDocument();
  expect(location.search).toBe("?transport=websocket");
});

test("Enter opens one with its capabilities, misuse and what it exercised; Escape closes it", async () => {
  const { asked } = await opened();
  (page.getByRole("row", { name: /m1/ }).element() as HTMLElement).focus();
  await userEvent.keyboard("{End}{Enter}");
  await expect.element(page.getByRole("heading", { name: "s1: agent 1.2" })).toBeVisible();
  await expect.element(page.getByRole("row", { name: /request 99 is unknown 2025-11-25 basic/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Tools listed ✓ 1×/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Progress: token sent ✓ 1×/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Skills read ✓ 2×/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^skill:\/\/a\/SKILL.md 2/ })).toBeInTheDocument();
  await expect.element(page.getByRole("row", { name: /^Sampling not yet not declared call sampling_demo/ })).toBeInTheDocument();
  await expect.element(page.getByRole("link", { name: "its log" })).toHaveAttribute("href", "/dashboard/live?session=s1");
  expect(asked.some((url) => url.includes("session=s1") && url.includes("kind=client.misuse"))).toBe(true);
  await userEvent.keyboard("{Escape}");
  await expect.poll(() => location.pathname).toBe("/dashboard/sessions");
});

const declares = (seq: number, capabilities: object) =>
  entry(seq, seq, "message.received", { session: "m1", rpc: "request", method: "tools/call", id: seq, message: { params: { _meta: { "io.modelcontextprotocol/clientCapabilities": capabilities } } } });

test("the capabilities of a modern client are those of all its requests, with how many declared each", async () => {
  const { show } = await opened("/m1");
  answerApi((path, query) => {
    if (path !== "/api/events") return undefined;
    const events = query.get("kind") === "message.received" ? [declares(3, {}), declares(2, {}), declares(1, { sampling: {} })] : [];
    return { run: "run", gap: null, events, next: null, last: 3 };
  });
  show({ sessions: [{ ...ROWS.find(({ id }) => id === "m1"), requests: 9, capabilities: {} }] });
  await expect.element(page.getByRole("region", { name: "Declared capabilities" })).toMatchTextContent(/samplingin 1 of 3 requests.*Its 3 requests differ/);
  await expect.element(page.getByRole("row", { name: /^Sampling not yet declared/ })).toBeInTheDocument();
  await expectAccessible();
});

test("a client page lists refused requests and links to the log; what a row counts is not listed again", async () => {
  const { show } = await opened("/s2");
  show({ sessions: [{ ...ROWS[1], requests: 7, refused: 2 }], refusals: [refusalRow({ id: "41", session: "s2" }), refusalRow({ id: "42", session: "s1" })] });
  const refused = page.getByRole("region", { name: "Refused requests" });
  await expect.element(refused.getByRole("table", { name: "Refused requests: 2, newest first" })).toBeVisible();
  await expect.element(refused.getByRole("row", { name: /tools\/call: HTTP 400, -32020, Header mismatch: Mcp-Name/ })).toBeVisible();
  expect(refused.getByRole("link").elements().map((link) => link.getAttribute("href"))).toEqual(["/dashboard/live?at=41"]);
  await expect.element(refused.getByText(/^1 more are not listed/)).toBeVisible();
  await expect.element(page.getByRole("row", { name: /s2 editor/ })).toMatchTextContent(/20$/);
});

test("where nothing was refused or noted, the page says what was looked at", async () => {
  await opened("/s2");
  await expect.element(page.getByText("The server answered none of 3 requests with an error because of what the client sent.")).toBeVisible();
  await expect.element(page.getByText(/The server notes few kinds of violation, .* It does not check every rule of 2025-11-25\./)).toBeVisible();
  expect(document.body.textContent).not.toMatch(/nothing that its revision forbids/);
});

async function judgedView(judges: boolean, session: object, label: string) {
  const asked = answerApi((path, query) => {
    if (path === "/api/server") return serverThat(judges);
    if (path === "/api/judge") return judgeReport([judgedSubject([judgedRule()], { label }), judgedSubject([], { label: "another" })]);
    return path === "/api/events" && query.get("session") === "s1" ? { run: "r", gap: null, last: 9, next: null, events: [{ ...MISUSE, connection: "w5" }] } : undefined;
  });
  const view = await openView(SessionsView, "/sessions/:id?", "/sessions/s1", JudgedProvider);
  view.show({ sessions: [sessionRow(session)] }, "run");
  return { ...view, asked, verdicts: page.getByRole("region", { name: "Verdicts of the judge" }) };
}

test.each([
  ["its label", { label: "acme" }, "acme"],
  ["its session", {}, "s1"],
  ["its connection", { transport: "websocket" }, "w5"],
])("a client page has the verdicts on the client, found by %s", async (_, session, label) => {
  const { verdicts } = await judgedView(true, session, label);
  await expect.element(verdicts.getByRole("link", { name: `Report on ${label}` })).toHaveAttribute("href", `/dashboard/report/${label}`);
  await expect.element(verdicts).toMatchTextContent(/✗ 1 failed.*0 not observed/);
  await expect.element(verdicts.getByRole("link", { name: "Answers ping" })).toHaveAttribute("href", `/dashboard/report/${label}#ping.answered`);
  expect(verdicts.element().textContent).not.toMatch(/another/);
  await inBothThemes(() => expectAccessible());
});

test("without a judge the client page says that nobody judges", async () => {
  const { verdicts, asked } = await judgedView(false, {}, "s1");
  await expect.element(verdicts).toMatchTextContent(/Nobody judges the clients of this server.*mcp-probe serve --judge/);
  expect(asked.filter((url) => url.startsWith("/api/judge"))).toEqual([]);
});

test("what has no known client is a row of its own, and no client", async () => {
  const { show } = await opened("/unattributed");
  const unattributed = sessionRow({ id: "unattributed", era: null, transport: null, revision: "", client_name: "", client_version: "", requests: 0, refused: 1, misuse: 1 });
  show({ sessions: [...ROWS, unattributed], refusals: [refusalRow({ session: null, method: null, code: -32700, message: "Parse error" }), refusalRow({ id: "10" })] });
  await expect.element(page.getByRole("row", { name: /^unattributed no known client – .* 1 1$/ })).toBeVisible();
  await expect.element(page.getByRole("heading", { name: "unattributed: no known client" })).toBeVisible();
  await expect.element(page.getByRole("row", { name: /unreadable request: HTTP 400, -32700, Parse error/ })).toBeVisible();
  await expect.element(page.getByRole("table", { name: "Refused requests: 1, newest first" })).toBeVisible();
  await expect.element(page.getByRole("table", { name: /^Exercised/ })).not.toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
});

test("a session that is not known is said to be so", async () => {
  await opened("/s99");
  await expect.element(page.getByText(/This run of the server knows no/)).toBeVisible();
});

test("while nothing has connected, it says how to connect", async () => {
  answerApi((path) => (path === "/api/server" ? { mcp: "http://probe.example/mcp" } : undefined));
  const { show } = await openView(SessionsView, "/sessions/:id?", "/sessions");
  await expect.element(page.getByText("Waiting for the server")).toBeVisible();
  show({}, "run");
  await expect.element(page.getByText("No client has connected since the server started")).toBeVisible();
  await page.getByRole("radio", { name: "VS Code" }).click({ force: true });
  await expect.element(page.getByRole("group", { name: ".vscode/mcp.json" })).toMatchTextContent(/"url": "http:..probe.example.mcp"/);
  await inBothThemes(() => expectAccessible());
});

test("while nothing has spoken on standard streams, it says that they are the way", async () => {
  answerApi((path) => (path === "/api/server" ? { mcp: null } : undefined));
  const { show } = await openView(SessionsView, "/sessions/:id?", "/sessions");
  await expect.element(page.getByText("Waiting for the server")).toBeVisible();
  show({}, "run");
  await expect.element(page.getByText(/a server that speaks MCP on its standard input and output/)).toBeVisible();
  expect(document.body.textContent).not.toMatch(/curl|http:/);
});

test("of a file that has no session it says just that, and not how to connect a client", async () => {
  answerApi((path) => (path === "/api/server" ? { mcp: null, file: { name: "a.mcpprobe", saved_at: null, client: null, call: null, gaps: [] } } : undefined));
  const { show } = await openView(SessionsView, "/sessions/:id?", "/sessions");
  show({}, "run");
  await expect.element(page.getByText("The file has nothing of this")).toBeVisible();
  expect(document.body.textContent).not.toMatch(/connect/);
});

test("it is accessible in light and dark", async () => {
  await opened("/s1");
  await expect.element(page.getByRole("row", { name: /request 99/ })).toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
  expect(page.getByRole("row").elements().length).toBeGreaterThan(3);
});
