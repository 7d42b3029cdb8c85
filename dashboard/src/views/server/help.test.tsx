import { expect, test } from "vitest";
import { page } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { answerApi, openView } from "~/testing/view";
import HelpView from "./help-view";

const tool = (name: string, more: object = {}) => ({
  name, title: name, toolset: "streaming", description: `What ${name} does.`, exercises: "`notifications/progress`", shows: "a bar", task_support: "forbidden",
  requires: [], since: "2025-03-26", until: "2026-07-28", annotations: null, output_schema: null, docs: "docs/tools.md", input_schema:
  { type: "object", properties: { steps: { type: "integer", minimum: 1, maximum: 100, default: 5, description: "How many" } } }, ...more,
});

const TOOLS = [tool("chatty", { input_schema: { type: "object", properties: {} } }), tool("progress"), tool("ping_client", { until: "2025-11-25" })];

async function opened(path = "", mcp: string | null = "http://probe.example/mcp") {
  answerApi((asked) => (asked === "/api/tools" ? { tools: TOOLS } : { mcp, toolsets: [] }));
  await openView(HelpView, "/help/:tool?", `/help${path}`);
  await expect.element(page.getByRole("heading", { name: "progress" })).toBeInTheDocument();
}

test("clients are connected with this server's address", async () => {
  await opened();
  await expect.element(page.getByRole("group", { name: "my_client.py" })).toMatchTextContent(/"http:..probe.example.mcp"/);
  await page.getByRole("radio", { name: "Claude Code" }).click({ force: true });
  await expect.element(page.getByRole("group", { name: "Shell" })).toMatchTextContent(/claude mcp add --transport http probe http:..probe.example.mcp$/);
  expect(location.search).toBe("?client=claude");
});

test("a server on standard streams has no address, and none is shown", async () => {
  await opened("", null);
  await expect.element(page.getByText(/a server that speaks MCP on its standard input and output/)).toBeVisible();
  await expect.element(page.getByText("when started with --tools streaming").first()).toBeInTheDocument();
  await expect.element(page.getByText("Example message in a session, 2025-11-25").first()).toBeInTheDocument();
  expect(document.body.textContent).not.toMatch(/curl -N|http:|\?tools=/);
  await inBothThemes(() => expectAccessible());
});

test.each(["#progress", "/progress"])("help%s goes to the tool", async (path) => {
  await opened(path);
  await expect.element(page.getByRole("heading", { name: "progress" })).toHaveFocus();
});

test("arguments are a readable table, and a tool is shown a call in the revisions that it is for", async () => {
  await opened();
  await expect.element(page.getByRole("row", { name: "steps integer 1 to 100 5 How many" }).first()).toBeInTheDocument();
  await expect.element(page.getByText("It takes no arguments.")).toBeInTheDocument();
  expect(page.getByText("Example call with curl, 2026-07-28").elements()).toHaveLength(2);
  expect(page.getByText("Example message in a session, 2025-11-25").elements()).toHaveLength(3);
});

test("the search filters tools", async () => {
  await opened();
  await page.getByRole("searchbox").fill("what chat");
  await expect.element(page.getByRole("heading", { name: "progress" })).not.toBeInTheDocument();
  await expect.element(page.getByRole("heading", { name: "chatty" })).toBeInTheDocument();
});

test("words of the protocol are explained", async () => {
  await opened();
  await expect.element(page.getByText(/A socket of the client took the message/)).toBeInTheDocument();
});

test("it is accessible in light and dark", async () => {
  await opened();
  await inBothThemes(() => expectAccessible());
  expect(page.getByRole("article").elements()).toHaveLength(3);
});
