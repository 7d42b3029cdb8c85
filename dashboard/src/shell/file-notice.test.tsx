import { afterEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import { answerApi, openView } from "~/testing/view";
import { FileNotice } from "./file-notice";

const FILE = { name: "a.mcpprobe", saved_at: 1_795_258_465, program: "1", client: "m1", call: null, filtered: true, cut_off: false, gaps: [] };

async function opened(file: object | null) {
  answerApi((path) => (path === "/api/server" ? { mcp: null, file } : undefined));
  await openView(FileNotice, "/live", "/live");
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

test("a server that shows its own log has no such line", async () => {
  await opened(null);
  await vi.waitFor(() => expect(globalThis.fetch).toHaveBeenCalled());
  await expect.element(page.getByRole("region")).not.toBeInTheDocument();
});
