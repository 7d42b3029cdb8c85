import { expect, test } from "vitest";
import { page } from "vitest/browser";
import { OpenFileContext } from "~/protocol/client";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import ExportView from "./saving";

const CONTAINS = {
  entries: 1412, first: 1, last: 1500, first_at: 1_795_258_465, last_at: 1_795_258_900, calls: 9, clients: ["m1", "nightly"],
  kinds: { "http.request": 12, "message.received": 1400 }, hidden: { authorization: 31 }, gaps: [{ first: 1, last: 20 }],
};

async function opened(search = "", told: object | null = { run: "abc", client: null, call: null, judged: true, contains: CONTAINS }) {
  const asked = answerApi((path) => (path === "/api/export" && told !== null ? told : undefined));
  const view = await openView(ExportView, "/export", `/export${search}`);
  view.show({ sessions: [sessionRow({ id: "m1", client_name: "agent", client_version: "2" })] }, "abc");
  return asked;
}

test("what would be in the file is shown before it is saved, with what is hidden and what is missing", async () => {
  const asked = await opened();
  await expect.element(page.getByText("1,412", { exact: true })).toBeVisible();
  await expect.element(page.getByText("authorization, 31×")).toBeVisible();
  await expect.element(page.getByText("20 entries were pushed out of the log")).toBeVisible();
  await page.getByText("Entries by kind").first().click();
  await expect.element(page.getByRole("row", { name: "message.received 1,400" })).toBeInTheDocument();
  expect(asked).toEqual(["/api/export"]);
});

test("the address chooses a client or a call, and the links are of the same", async () => {
  const asked = await opened("?client=m1");
  await expect.element(page.getByRole("link", { name: "Session file" })).toHaveAttribute("href", "/api/export.mcpprobe?client=m1");
  await expect.element(page.getByRole("link", { name: "HAR" })).toHaveAttribute("href", "/api/export.har?client=m1");
  await page.getByRole("combobox", { name: "Of" }).selectOptions("all clients");
  await expect.element(page.getByRole("link", { name: "Page" })).toHaveAttribute("href", "/api/export.html");
  expect(asked).toEqual(["/api/export?client=m1", "/api/export"]);
});

test("a call leaves its place to a client that is chosen", async () => {
  await opened("?call=abc.c7");
  await expect.element(page.getByRole("link", { name: "Session file" })).toHaveAttribute("href", "/api/export.mcpprobe?call=abc.c7");
  await page.getByRole("combobox", { name: "Of" }).selectOptions("m1");
  await expect.element(page.getByRole("link", { name: "Session file" })).toHaveAttribute("href", "/api/export.mcpprobe?client=m1");
});

test("where there is nothing, the server's reason is shown and no link", async () => {
  await opened("?client=nobody", null);
  await expect.element(page.getByText("there is no such thing")).toBeVisible();
  await expect.element(page.getByRole("link", { name: "Session file" })).not.toBeInTheDocument();
});

test("it is accessible in light and dark", async () => {
  await opened();
  await expect.element(page.getByText("1,412", { exact: true })).toBeVisible();
  await inBothThemes(() => expectAccessible());
});

test("a file that is chosen with the button is opened as one that is dropped", async () => {
  const chosen: File[] = [];
  answerApi(() => undefined);
  const open = (file: File) => void chosen.push(file);
  await openView(ExportView, "/export", "/export", ({ children }) => <OpenFileContext value={open}>{children}</OpenFileContext>);
  await page.getByLabelText("Open a session file").first().upload(new File(["x"], "a.mcpprobe"));
  expect(chosen.map(({ name }) => name)).toEqual(["a.mcpprobe"]);
});
