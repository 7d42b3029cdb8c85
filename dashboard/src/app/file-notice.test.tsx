import { afterEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import { answerApi, openView } from "~/testing/view";
import { FileNotice } from "./file-notice";

const FILE = { name: "a.mcpprobe", saved_at: 1_795_258_465, program: "1", client: "m1", call: null, filtered: true, cut_off: false, gaps: [] };

async function opened(file: object | null) {
  answerApi((path) => (path === "/api/server" ? { mcp: null, file } : undefined));
  await openView(FileNotice, "/trace", "/trace");
}

afterEach(() => vi.restoreAllMocks());

test("a file is named, with what it has and when it was saved", async () => {
  await opened(FILE);
  await expect.element(page.getByRole("region", { name: "File" })).toMatchTextContent(/^a\.mcpprobe: a file, saved .*\. It has the entries of m1\. Nothing of that is missing\.$/);
});

test("a file that is incomplete says so", async () => {
  await opened({ ...FILE, saved_at: null, client: null, filtered: false, cut_off: true, gaps: [{ first: 1, last: 1000 }] });
  await expect
    .element(page.getByRole("region", { name: "File" }))
    .toMatchTextContent("a.mcpprobe: a file. It has the whole log. It is incomplete: its end is missing, and 1,000 entries are missing.");
});

test("beside a live log one click leads back to it, as it was left", async () => {
  sessionStorage.setItem("mcp-probe-live", "/dashboard/calls?filter=tool%3Aprogress");
  answerApi((path) => (path === "/api/server" ? { mcp: null, file: FILE } : undefined));
  await openView(() => <FileNotice besideLive />, "/trace", "/trace");
  await expect.element(page.getByRole("link", { name: "Back to live" })).toHaveAttribute("href", "/dashboard/calls?filter=tool%3Aprogress");
  sessionStorage.clear();
});

test("a file that the server has closed says so, and leads back too", async () => {
  answerApi(() => undefined);
  await openView(() => <FileNotice besideLive />, "/trace", "/trace");
  await expect.element(page.getByRole("alert")).toMatchTextContent("there is no such thing.");
  await expect.element(page.getByRole("link", { name: "Back to live" })).toHaveAttribute("href", "/dashboard/trace");
});

test("a server that shows its own log has no such line", async () => {
  await opened(null);
  await vi.waitFor(() => expect(globalThis.fetch).toHaveBeenCalled());
  await expect.element(page.getByRole("region")).not.toBeInTheDocument();
});
