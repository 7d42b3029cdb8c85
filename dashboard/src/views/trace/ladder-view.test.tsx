import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import type { Entry } from "~/protocol/schema";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { cancelledCall, countsRow, entry, progressEntry, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { layoutOf } from "~/widgets/ladder/layout";
import { pictureOf } from "~/widgets/ladder/picture";
import { rowsOf } from "~/widgets/ladder/rows";
import { svgOf } from "~/widgets/ladder/sheet";
import LadderView from "./ladder-view";

afterEach(() => {
  vi.restoreAllMocks();
});

const STREAM = { call: "c1", exchange: 4, stream: "p1" };
const request = (seq: number, ms: number, id: number, name: string) =>
  entry(seq, ms, "message.received", { rpc: "request", method: "tools/call", id, message: { method: "tools/call", params: { name, arguments: {} } }, exchange: 4 });
const EVENTS: readonly Entry[] = [
  request(1, 0, 7, "progress"),
  entry(2, 0.1, "call.started", { tool: "progress", method: "tools/call", cause: 1, ...STREAM }),
  ...[1, 2, 3].map((step) => progressEntry(step * 2 + 1, step * 10, step, 10, { position: step, cause: 2, ...STREAM })),
  entry(9, 35, "message.delivered", { cause: 3, first: 1, last: 3, ...STREAM }),
  entry(10, 40, "message.received", { rpc: "notification", method: "notifications/cancelled", id: null, message: { params: { requestId: 7, reason: "enough" } } }),
  entry(11, 40.1, "call.cancelled", { by: "notification", reason: "enough", effect: true, cause: 10, ...STREAM }),
];

const ladder = page.getByRole("listbox");
const row = (name: string | RegExp) => page.getByRole("option", { name });

function answerCall(): void {
  answerApi((path) => (path === "/api/calls/run.c1" ? { call: cancelledCall(), evidence: { complete: true, events: EVENTS } } : undefined));
}

test("the ladder of a call says what became of it and draws its messages; a fold opens, and a row shows its message first", async () => {
  answerCall();
  const { show } = await openView(LadderView, "/ladder", "/ladder?call=run.c1");
  show({}, "run");
  await expect.element(page.getByText(/^progress: cancelled by the client/)).toBeVisible();
  await expect.element(row(/^0 ms, from s1 agent 1\.2 to MCP Probe: tools\/call request · id 7/)).toBeVisible();
  const fold = row(/3 × notifications\/progress · 1\/10 to 3\/10/);
  await expect.element(fold).toBeVisible();
  await inBothThemes(() => expectAccessible());
  await fold.click();
  await expect.element(row(/notifications\/progress · 2\/10/)).toBeVisible();
  await row(/at MCP Probe: cancelled by notification · "enough"/).click();
  expect(new URLSearchParams(location.search).get("at")).toBe("11");
  await row(/tools\/call request/).click();
  const drawer = page.getByRole("complementary");
  await expect.element(drawer).toMatchTextContent(/^tools\/call request.*Message.*"params".*Entry#1 message\.received/);
  await expect.element(drawer.getByRole("link", { name: "#1 in Live" })).toHaveAttribute("href", "/dashboard/live?at=1");
  await inBothThemes(() => expectAccessible());
});

test("the keyboard goes from row to row and opens them", async () => {
  answerCall();
  await openView(LadderView, "/ladder", "/ladder?call=run.c1");
  await expect.element(row(/tools\/call request/)).toBeVisible();
  ladder.element().focus();
  await userEvent.keyboard("{End}");
  await vi.waitFor(() => expect(document.getElementById(ladder.element().getAttribute("aria-activedescendant") ?? "")?.textContent).toMatch(/cancelled by notification/));
  await userEvent.keyboard("{Home}{ArrowDown} ");
  await expect.element(row(/notifications\/progress · 2\/10/)).toBeVisible();
  await userEvent.keyboard("{Home}{Enter}");
  await expect.element(page.getByRole("complementary")).toBeVisible();
});

test("an entry that is no step leads to the step before it", async () => {
  answerCall();
  await openView(LadderView, "/ladder", "/ladder?call=run.c1&at=9");
  await expect.element(page.getByRole("complementary")).toMatchTextContent(/^notifications\/progress.*"progress": 3/);
});

test("what is searched is counted and found one after the other, and the rest stays in sight", async () => {
  answerCall();
  await openView(LadderView, "/ladder", "/ladder?call=run.c1&text=enough");
  const found = page.getByRole("group", { name: "What was found" });
  await expect.element(found).toMatchTextContent(/2 found/);
  await found.getByRole("button", { name: "Next one found" }).click();
  await expect.element(found).toMatchTextContent(/1 of 2/);
  await found.getByRole("button", { name: "Next one found" }).click();
  await expect.element(found).toMatchTextContent(/2 of 2/);
  await expect.element(row(/tools\/call request/)).toBeInTheDocument();
});

test("the list has the same steps in words, nothing folded", async () => {
  answerCall();
  await openView(LadderView, "/ladder", "/ladder?call=run.c1&as=list");
  const rows = page.getByRole("grid").getByRole("row");
  await expect.element(rows.filter({ hasText: "3/10" })).toMatchTextContent(/MCP Probes1 agent 1\.2notifications\/progress3\/10/);
  expect(rows.elements()).toHaveLength(7);
  await expectAccessible();
});

test("the ladder of a client has its handshake, follows the log, and is that of the newest client where none is named", async () => {
  const newer = request(12, 90, 8, "simple_tool");
  let failed = false;
  answerApi((path, query) => {
    if (query.get("since") === "100" && !failed) {
      failed = true;
      throw new Error("not reached");
    }
    if (path === "/api/events/50") return entry(50, -9, "message.received", { session: null, rpc: "request", method: "initialize", id: 0, message: {} });
    if (path !== "/api/events" || query.get("session") !== "s2") return undefined;
    if (query.get("since") === "100") return { run: "run", gap: null, events: [newer], next: 120, last: 120 };
    const opened = entry(51, -8, "session.opened", { cause: 50 });
    if (query.get("before") === "60") return { run: "run", gap: null, events: [opened], next: null, last: 100 };
    return { run: "run", gap: null, events: EVENTS.toReversed(), next: 60, last: 100 };
  });
  const { show } = await openView(LadderView, "/ladder", "/ladder");
  show({ sessions: [sessionRow({ id: "s1", last_at: 1 }), sessionRow({ id: "s2", last_at: 2 })], counts: [countsRow({ last: 100 })] }, "run");
  await expect.element(page.getByRole("heading", { name: "Ladder of s2" })).toBeVisible();
  await expect.element(row(/initialize request/)).toBeVisible();
  await expect.element(row(/tools\/call request/)).toBeVisible();
  // the first time it is asked for what is new, nobody answers
  show({ counts: [countsRow({ last: 120 })] });
  await expect.element(row(/simple_tool/), { timeout: 5_000 }).toBeVisible();
  expect(failed).toBe(true);
});

test("a name that a client was given leads to its newest session", async () => {
  answerApi((path, query) => (path === "/api/events" && query.get("session") === "s2" ? { run: "run", gap: null, events: EVENTS, next: null, last: 100 } : undefined));
  const { show } = await openView(LadderView, "/ladder", "/ladder?client=acme");
  show({ sessions: [sessionRow({ id: "s1", label: "acme", last_at: 1 }), sessionRow({ id: "s2", label: "acme", last_at: 2 }), sessionRow({ id: "s3", last_at: 3 })] }, "run");
  await expect.element(page.getByRole("heading", { name: "Ladder of s2" })).toBeVisible();
  await expect.element(row(/tools\/call request/)).toBeVisible();
});

/** Until the next frame is painted. */
const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

/** As high as a window is, as the frame of the page makes its views. */
function Window({ children }: { children: ReactNode }) {
  return <div style={{ display: "grid", gridTemplateRows: "700px" }}>{children}</div>;
}

test("of ten thousand messages only those in view exist, and scrolling, searching and another pace are quick", async () => {
  const pings = Array.from({ length: 5_000 }, (_, index) => [
    entry(2 * index + 1, 2 * index, "message.received", { rpc: "request", method: "ping", id: index, message: { method: "ping" } }),
    entry(2 * index + 2, 2 * index + 1, "message.emitted", { rpc: "response", method: null, id: index, message: { result: {} }, cause: 2 * index + 1 }),
  ]).flat();
  answerApi((path) => (path === "/api/calls/run.c1" ? { call: cancelledCall(), evidence: { complete: true, events: pings } } : undefined));
  await openView(LadderView, "/ladder", "/ladder?call=run.c1", Window);
  await expect.element(row(/ping request · id 0$/)).toBeVisible();
  const box = ladder.element();
  expect(box.querySelectorAll("[role=option]").length).toBeLessThan(100);
  const timed = async (what: string, act: () => void) => {
    const start = performance.now();
    act();
    await painted();
    const taken = performance.now() - start;
    // oxlint-disable-next-line no-console
    console.log(`ladder of ${pings.length} messages: ${what} takes ${taken.toFixed(1)} ms`);
    return taken;
  };
  const taken = [
    await timed("a scroll", () => box.scrollTo({ top: 200_000 })),
    await timed("another scroll", () => box.scrollTo({ top: 380_000 })),
    await timed("time to scale", () => (page.getByRole("radio", { name: "Time to scale" }).element() as HTMLInputElement).click()),
    await timed("a zoom", () => (page.getByRole("button", { name: "Zoom in" }).element() as HTMLButtonElement).click()),
  ];
  // ten times of what it should be: only a list that is drawn as a whole is as slow
  expect(Math.max(...taken)).toBeLessThan(1_000);
});

test("a call that is not known says so", async () => {
  answerApi(() => undefined);
  await openView(LadderView, "/ladder", "/ladder?call=run.c9");
  await expect.element(page.getByRole("heading", { name: "This call could not be read" })).toBeVisible();
});

test("the file that is saved needs nothing else: it has a title, its lanes and its colours", () => {
  const picture = pictureOf(EVENTS, "s1 agent <b>");
  const text = svgOf({ title: "Ladder of s1", picture, origin: undefined, pace: "even", layout: layoutOf(rowsOf(picture.steps, new Set()), "even", 1) });
  const file = new DOMParser().parseFromString(text, "image/svg+xml");
  expect(file.querySelector("parsererror")).toBeNull();
  expect(file.documentElement.querySelector("title")?.textContent).toBe("Ladder of s1");
  expect(file.documentElement.textContent).toMatch(/s1 agent <b>MCP Probe.*tools\/call request.*3 × notifications\/progress.*cancelled by notification/);
  expect(text).not.toMatch(/var\(|class=|href/);
  expect(text).toMatch(/fill="rgb\(|fill="color\(/);
});

test("what does not fit on one page of paper goes on on the next, each row once", async () => {
  const pings = Array.from({ length: 60 }, (_, index) => entry(index + 1, index, "message.received", { rpc: "request", method: "ping", id: index, message: { method: "ping" } }));
  answerApi((path) => (path === "/api/calls/run.c1" ? { call: cancelledCall(), evidence: { complete: true, events: pings } } : undefined));
  await openView(LadderView, "/ladder", "/ladder?call=run.c1", Window);
  await expect.element(row(/ping request · id 0/).first()).toBeVisible();
  dispatchEvent(new Event("beforeprint"));
  const sheets = [...document.body.querySelectorAll("svg[role=img]")];
  expect(sheets.map((sheet) => sheet.querySelector("title")?.textContent)).toEqual(["Ladder of call run.c1, page 1 of 2", "Ladder of call run.c1, page 2 of 2"]);
  const ids = sheets.flatMap((sheet) => [...(sheet.textContent ?? "").matchAll(/id (\d+) /g)].map(([, id]) => Number(id)));
  expect(ids).toEqual(pings.map((_, index) => index));
  dispatchEvent(new Event("afterprint"));
});

test("on paper the page is the whole picture", async () => {
  answerCall();
  await openView(LadderView, "/ladder", "/ladder?call=run.c1");
  await expect.element(row(/tools\/call request/)).toBeVisible();
  dispatchEvent(new Event("beforeprint"));
  const printed = document.body.lastElementChild;
  expect(printed?.querySelector("svg title")?.textContent).toBe("Ladder of call run.c1, page 1 of 1");
  expect(printed?.textContent).toMatch(/tools\/call request.*cancelled by notification/);
  dispatchEvent(new Event("afterprint"));
  await vi.waitFor(() => expect(document.body.lastElementChild).not.toBe(printed));
});
