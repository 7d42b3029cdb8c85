import { expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import { answerApi, openView } from "~/testing/view";
import TraceView from "~/views/trace/trace-view";
import { FileMessage, FileNotice, useFileOpener } from "./file";
import { Header } from "./header";

const notice = () => page.getByRole("region", { name: "Dropped file" });

function drop(name: string): DragEvent {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["x"], name));
  const event = new DragEvent("drop", { dataTransfer, cancelable: true, bubbles: true });
  document.body.dispatchEvent(event);
  return event;
}

/** A page of a server that takes files, or does not; what was asked of it, and where the page went. */
async function opened(takes: boolean, answer: () => unknown = () => ({ number: 7 })) {
  const asked = answerApi((path) => (path === "/api/server" ? { takes_files: takes } : path === "/opened" ? answer() : undefined));
  const gone: string[] = [];
  const go = (address: string) => void gone.push(address);
  await openView(() => <FileMessage {...useFileOpener(go)} />, "/trace", "/trace");
  return { asked, gone };
}

test("a dropped file is sent to the server, and the page goes where that shows it", async () => {
  const { asked, gone } = await opened(true);
  expect(drop("a 1.mcpprobe").defaultPrevented).toBe(true);
  await vi.waitFor(() => expect(gone).toEqual(["/opened/7/dashboard/trace"]));
  expect(asked).toEqual(["/api/server", "/opened?name=a+1.mcpprobe"]);
});

test("a file that the server refuses is named in one line, and the page stays", async () => {
  const { gone } = await opened(true, () => Response.json({ detail: "a.mcpprobe cannot be opened: it is cut off" }, { status: 422 }));
  drop("a.mcpprobe");
  await expect.element(notice().getByRole("alert")).toMatchTextContent("a.mcpprobe cannot be opened: it is cut off");
  await page.getByRole("button", { name: "Close" }).click();
  await expect.element(notice()).not.toBeInTheDocument();
  expect(gone).toEqual([]);
});

test.each([
  ["a-1.mcpprobe", "mcp-probe open --open a-1.mcpprobe"],
  ["it's $HOME.mcpprobe", String.raw`mcp-probe open --open './it'\''s $HOME.mcpprobe'`],
  ["-o.mcpprobe", "mcp-probe open --open './-o.mcpprobe'"],
])("a server that takes no files is sent none: the page says how to open %s", async (name, command) => {
  const { asked } = await opened(false);
  expect(drop(name).defaultPrevented).toBe(true);
  await expect.element(notice().getByText(command, { exact: true })).toBeVisible();
  expect(asked.filter((each) => each.startsWith("/opened"))).toEqual([]);
});

test("another file does not leave the page, which says that it is no session file", async () => {
  const { asked } = await opened(true);
  expect(drop("picture.png").defaultPrevented).toBe(true);
  await expect.element(notice().getByRole("alert")).toMatchTextContent("picture.png is no session file: those end with .mcpprobe or .ndjson.");
  expect(asked).toEqual([]);
});

const FILE = { name: "a.mcpprobe", saved_at: 1_795_258_465, program: "1", client: "m1", call: null, filtered: true, cut_off: false, gaps: [] };

async function openedFile(file: object | null) {
  answerApi((path) => (path === "/api/server" ? { mcp: null, file } : undefined));
  await openView(FileNotice, "/trace", "/trace");
}

test("a file is named, with what it has and when it was saved", async () => {
  await openedFile(FILE);
  await expect.element(page.getByRole("region", { name: "File" })).toMatchTextContent(/^a\.mcpprobe: a file, saved .*\. It has the entries of m1\. Nothing of that is missing\.$/);
});

test("a file that is incomplete says so", async () => {
  await openedFile({ ...FILE, saved_at: null, client: null, filtered: false, cut_off: true, gaps: [{ first: 1, last: 1000 }] });
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

test.each([
  ["a saved file", FILE, "saved file", 0],
  ["a server's log", null, "live", 2],
] as const)("of %s the header says so, and only what grows can be followed and held", async (_what, file, state, buttons) => {
  answerApi((path) => (path === "/api/server" ? { mcp: null, file } : undefined));
  const { fake } = await openView(
    () => (
      <>
        <Header />
        <TraceView />
      </>
    ),
    "/trace",
    "/trace",
  );
  fake.source.hello("a", { id: "a-0" });
  fake.source.entry("a", 1);
  fake.frame();
  const pill = page.getByRole("status", { name: "Connection" });
  await expect.element(pill).toMatchTextContent(state);
  expect(pill.element().querySelector("[title]")?.getAttribute("title")).toBe(file?.name ?? "Everything arrives as it happens");
  await expect.poll(() => page.getByRole("button", { name: /^(Follow|Pause)$/ }).elements().length).toBe(buttons);
});

test("a server that shows its own log has no such line", async () => {
  await openedFile(null);
  await vi.waitFor(() => expect(globalThis.fetch).toHaveBeenCalled());
  await expect.element(page.getByRole("region")).not.toBeInTheDocument();
});
