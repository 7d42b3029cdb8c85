import { expect, test } from "vitest";
import { page } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { judgedRule, judgedSubject, judgeReport, serverThat } from "~/testing/reports";
import { countsRow, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { JudgedProvider } from "~/trace/findings";
import ClientsView from "./clients-view";

const BROKEN = judgedSubject([judgedRule(), judgedRule({ rule: "http.post-accept", title: "Accepts both types", verdict: "WARN" })], {
  conclusion: "breaks 1 MUST rule of 2025-11-25; 1 warning; 22 of 30 rules exercised",
  summary: { FAIL: 1, WARN: 1, INCONCLUSIVE: 0, PASS: 20, NOT_OBSERVED: 8 },
});
const CLEAN = judgedSubject([], { label: "s9", kind: "session", names: [{ name: "editor", version: "1.2" }], conclusion: "no fault seen; 25 of 96 rules exercised", summary: { FAIL: 0, WARN: 0, INCONCLUSIVE: 1, PASS: 24, NOT_OBSERVED: 71 } });

async function opened({ judges = true, server = {}, judged = [BROKEN, CLEAN] } = {}) {
  answerApi((at) => {
    if (at === "/api/server") return { ...serverThat(judges), ...server };
    return at === "/api/judge" ? judgeReport(judged) : undefined;
  });
  const view = await openView(ClientsView, "/clients/:id?", "/clients", JudgedProvider);
  const come = (rows: readonly object[]) => view.show({ sessions: rows, counts: [countsRow()] }, "run");
  return { ...view, come };
}

const cards = () => page.getByRole("list", { name: "Clients" });

test("each client is a card with a sentence, figures that add up to it and what is worst; one that breaks rules first", async () => {
  const { come } = await opened();
  come([sessionRow({ id: "s1", label: "acme", opened_at: 10, last_at: 20 }), sessionRow({ id: "s9", client_name: "editor", opened_at: 100, last_at: 110 })]);
  await expect.poll(() => cards().getByRole("heading").elements().map(({ textContent }) => textContent)).toEqual(["acme agent 1.2", "editor 1.2 s9"]);
  const [acme, editor] = [cards().getByRole("listitem").first(), cards().getByRole("listitem").filter({ hasText: "editor" })];
  await expect.element(page.getByText("2 clients: the worst first, then the newest")).toBeVisible();
  await expect.element(editor).toMatchTextContent(/No fault seen; 25 of 96 rules exercisedinconclusive1passed24/);
  await expect.element(acme).toMatchTextContent(/Breaks 1 MUST rule of 2025-11-25; 1 warning; 22 of 30 rules exercisedbroken1warning1passed20/);
  await expect.element(acme.getByRole("link", { name: "acme" })).toHaveAttribute("href", "/dashboard/clients/acme");
  await expect.element(acme.getByRole("link", { name: "✗ Ping is not answered" })).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  await inBothThemes(() => expectAccessible());
});

test("the page begins with what the verdicts on all clients come to", async () => {
  const { come } = await opened();
  come([sessionRow({ id: "s1", label: "acme" }), sessionRow({ id: "s9", client_name: "editor" })]);
  const verdict = page.getByRole("status", { name: "Verdict on all clients" });
  await expect.element(verdict).toMatchTextContent(/^1 of 2 clients breaks the protocol: acme\.$/);
  await expect.element(verdict).toHaveAttribute("data-tone", "bad");
  expect(cards().element().compareDocumentPosition(verdict.element())).toBe(Node.DOCUMENT_POSITION_PRECEDING);
});

test("where no client breaks rules the page begins with their warnings, or says that no fault was seen", async () => {
  const warned = judgedSubject([], { label: "s8", kind: "session", names: [{ name: "other", version: "1" }], summary: { FAIL: 0, WARN: 2, INCONCLUSIVE: 0, PASS: 9, NOT_OBSERVED: 5 } });
  const judged = [warned, CLEAN];
  const { come, screen } = await opened({ judged });
  const rows = [sessionRow({ id: "s8", client_name: "other" }), sessionRow({ id: "s9", client_name: "editor" })];
  come(rows);
  const verdict = page.getByRole("status", { name: "Verdict on all clients" });
  await expect.element(verdict).toMatchTextContent(/^No client breaks the protocol; 1 of 2 clients has warnings: other 1\.$/);
  await screen.unmount();
  const clean = await opened({ judged: [CLEAN, { ...CLEAN, label: "s7", names: [{ name: "third", version: "1" }] }] });
  clean.come([sessionRow({ id: "s9", client_name: "editor" }), sessionRow({ id: "s7", client_name: "third" })]);
  await expect.element(verdict).toMatchTextContent(/^No fault seen in 2 clients\.$/);
});

test("an earlier run that broke rules stands before those that did not", async () => {
  const broken = { ...CLEAN, label: "s1", summary: { ...CLEAN.summary, FAIL: 1 } };
  const { come } = await opened({ judged: [{ ...CLEAN, label: "s3" }, { ...CLEAN, label: "s2" }, broken] });
  come(["s1", "s2", "s3"].map((id, at) => sessionRow({ id, client_name: "editor", opened_at: at, last_at: at })));
  await expect.element(cards()).toMatchTextContent(/2 earlier sessions, 1 with broken rules: s1 ✗ ?s2 ✓/);
});

test("earlier runs of a program stand on its card, each with its own verdict", async () => {
  const { come } = await opened();
  come([sessionRow({ id: "s9", client_name: "editor", opened_at: 10 }), sessionRow({ id: "s12", client_name: "editor", opened_at: 100, last_at: 2e9 })]);
  await expect.element(cards()).toMatchTextContent(/editor 1\.2 s12.*1 earlier session: s9 ✓/);
  await expect.element(cards().getByRole("link", { name: "s9 ✓" })).toHaveAttribute("href", "/dashboard/clients/s9");
  await expect.element(page.getByText("2 clients: the worst first, then the newest")).toBeVisible();
});

test("the search leaves the clients that have its text", async () => {
  const { come } = await opened();
  come([sessionRow({ id: "s1", label: "acme" }), sessionRow({ id: "s9", client_name: "editor" })]);
  await page.getByRole("searchbox", { name: "Search clients" }).fill("EDIT");
  await expect.element(cards().getByRole("heading")).toMatchTextContent("editor 1.2 s9");
  expect(location.search).toBe("?text=EDIT");
});

test("without a judge a card counts what the server refused and noted, and the page says how to judge", async () => {
  const { come } = await opened({ judges: false });
  come([sessionRow({ label: "acme", requests: 7, refused: 2 })]);
  await expect.element(cards()).toMatchTextContent(/acme.*Not judged.*requests7refused2noted0/);
  await expect.element(page.getByText(/Judging is off/)).toMatchTextContent(/--no-judge/);
});

test("while there is no client the page says how to connect one, and the first that comes is welcomed", async () => {
  const { come } = await opened({ judged: [] });
  await expect.element(page.getByText("Waiting for the server")).toBeInTheDocument();
  come([]);
  await expect.element(page.getByRole("group", { name: "my_client.py" })).toMatchTextContent(/else "http:..probe.example.mcp"/);
  await page.getByRole("radio", { name: "VS Code" }).click({ force: true });
  await expect.element(page.getByRole("group", { name: ".vscode/mcp.json" })).toMatchTextContent(/"url": "http:..probe.example.mcp"/);
  await inBothThemes(() => expectAccessible());
  come([sessionRow({ id: "s9", client_name: "editor" })]);
  await expect.element(page.getByRole("status").filter({ hasText: "It works: editor 1.2 has sent its first request." })).toBeVisible();
  await expect.element(page.getByRole("group", { name: "my_client.py" })).not.toBeInTheDocument();
  await inBothThemes(() => expectAccessible());
});

test("what has no known client ends no welcome, and is a card once something of it was judged", async () => {
  const nothing = judgedSubject([], { label: "unattributed", kind: "nothing", names: [], summary: { NOT_OBSERVED: 86 } });
  const { come } = await opened({ judged: [nothing] });
  come([]);
  await expect.element(page.getByRole("group", { name: "my_client.py" })).toBeInTheDocument();
  await expect.element(cards()).not.toBeInTheDocument();
  come([sessionRow({ id: "unattributed", era: null, client_name: "", client_version: "", refused: 1 })]);
  await expect.element(cards()).toMatchTextContent(/Unattributed traffic/);
  await expect.element(page.getByRole("group", { name: "my_client.py" })).toBeInTheDocument();
});

test("a client that was there when the page was opened is not welcomed", async () => {
  const { come } = await opened();
  come([sessionRow({ id: "s9", client_name: "editor" })]);
  await expect.element(cards()).toMatchTextContent(/editor/);
  expect(document.body.textContent).not.toMatch(/It works/);
});

test("a server on standard streams has no address to connect to", async () => {
  const { come } = await opened({ server: { mcp: null }, judged: [] });
  come([]);
  await expect.element(page.getByText(/a server that speaks MCP on its standard input and output/)).toBeVisible();
  expect(document.body.textContent).not.toMatch(/curl|http:/);
});

test("a file without clients says just that", async () => {
  const { come } = await opened({ server: { mcp: null, file: { name: "a.mcpprobe" } }, judged: [] });
  come([]);
  await expect.element(page.getByText("The file has no client")).toBeVisible();
  expect(document.body.textContent).not.toMatch(/connect/);
});
