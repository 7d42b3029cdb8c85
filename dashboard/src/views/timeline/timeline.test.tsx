import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { delivered, progress, settled, started } from "~/testing/log";
import { sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import TimelineView from "./view";

// of each test anew: the picture is that of the last minute
let now = 0;
const cancel = () => ({ kind: "call.cancelled", at: now - 18, call: "c1", session: "s1", task: null, request_id: 5, by: "notification", reason: null, effect: true });
const usual = () => [
  started(now - 20, "c1", "s1"),
  progress(now - 19, "c1", "s1", 1),
  delivered(now - 18.9, "c1", "s1", 1, 1, 2),
  cancel(),
  settled(now - 17.5, "c1", "s1", { outcome: "cancelled", cancelled_by: "notification", scope_exit_ms: 500 }),
  started(now - 10, "c2", "m1", { tool: "simple_tool" }),
];

async function opened(query = "", entries: readonly object[] = usual()) {
  answerApi(() => undefined);
  const view = await openView(TimelineView, "/timeline", `/timeline${query}`);
  // the page bounds its height, and so what is in view
  view.screen.container.querySelector("main")?.style.setProperty("height", "700px");
  view.fake.source.hello("r");
  for (const [index, entry] of entries.entries()) view.fake.source.entry("r", index + 1, entry);
  view.show({ sessions: [sessionRow({ id: "s1", client_name: "agent" }), sessionRow({ id: "m1", era: "modern", client_name: "other" })] });
  return view;
}

beforeEach(async () => {
  now = Date.now() / 1000;
  await page.viewport(1280, 800);
});
afterEach(() => vi.restoreAllMocks());

const row = (name: RegExp) => page.getByRole("row", { name });

/** How many seconds the address says are shown. */
function span(): number {
  const query = new URLSearchParams(location.search);
  return Number(query.get("until")) - Number(query.get("from"));
}

test("calls are under their clients, with their outcome in words", async () => {
  await opened();
  await expect.element(row(/call progress c1 cancelled/)).toBeVisible();
  await expect.element(row(/call simple_tool c2 running/)).toBeVisible();
  await expect.element(row(/s1 agent/)).toBeVisible();
});

test("the cause of a cancellation is in the picture, and its facts come with the focus", async () => {
  await opened();
  await expect.element(page.getByText("cancelled by notification", { exact: true })).toBeInTheDocument();
  (row(/call progress c1/).element() as HTMLElement).focus();
  const facts = page.getByRole("region", { name: "Facts of the lane" });
  await expect.element(facts).toMatchTextContent(/by notification at \+2\.00 s, its scope exited 500 ms later/);
  await expect.element(facts).toMatchTextContent(/1 emitted, 1 delivered/);
});

test("arrows move from lane to lane and Enter opens the call", async () => {
  await opened();
  (row(/simple_tool c2/).element() as HTMLElement).focus();
  await userEvent.keyboard("{ArrowDown}{ArrowUp}{ArrowDown}");
  await expect.element(row(/progress c1/)).toHaveFocus();
  await userEvent.keyboard("{Enter}");
  await expect.poll(() => location.pathname).toBe("/dashboard/calls/r.c1");
});

test("Space pauses at a span that the address keeps, + zooms, 0 follows again", async () => {
  await opened();
  (row(/progress c1/).element() as HTMLElement).focus();
  await userEvent.keyboard(" ");
  await expect.poll(span).toBeCloseTo(60, 1);
  await userEvent.keyboard("+");
  await expect.poll(span).toBeCloseTo(30, 1);
  await userEvent.keyboard("0");
  await expect.poll(() => location.search).not.toContain("until");
});

test("a paused picture stays while entries come in", async () => {
  const { fake } = await opened();
  await page.getByRole("button", { name: "Pause" }).click();
  fake.source.entry("r", 50, settled(now - 1, "c2", "m1"));
  fake.frame();
  await expect.element(row(/simple_tool c2 running/)).toBeVisible();
  await page.getByRole("button", { name: "Follow" }).click();
  await expect.element(row(/simple_tool c2 completed/)).toBeVisible();
});

test("dragging over the picture zooms into that range", async () => {
  await opened();
  const grid = page.getByRole("grid").element();
  // before its width is measured there is no range to drag over
  await expect.poll(() => grid.querySelectorAll("svg text").length).toBeGreaterThan(0);
  const box = grid.getBoundingClientRect();
  // a pointer of its own: the browser tells of the machine's mouse whenever what lies under it changes
  const at = (type: string, x: number, buttons: number) =>
    grid.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 77, button: 0, buttons, clientX: box.left + 336 + x, clientY: box.top + 40 }));
  Element.prototype.setPointerCapture = () => undefined;
  const drag = () => {
    at("pointerdown", 100, 1);
    at("pointermove", 300, 1);
    at("pointerup", 300, 0);
  };
  const width = box.width - 336;
  // the address of the view before may still be on its way; whoever sees nothing happen drags once more
  await expect
    .poll(() => {
      const shown = span();
      if (shown === 0) drag();
      return shown;
    })
    .toBeCloseTo((200 / width) * 60, 0);
});

test("the same is there as a table", async () => {
  await opened("?as=table");
  await expect.element(row(/call progress c1 s1 agent .* cancelled 1 emitted, 1 delivered.* by notification/)).toBeVisible();
});

test("of 500 lanes only those in view exist, and a new picture is quick", async () => {
  const entries = Array.from({ length: 500 }, (_, index) => started(now - 30 + index / 20, `c${index}`, `s${index % 5}`));
  const { fake } = await opened("", entries);
  await expect.element(row(/c499/)).toBeVisible();
  expect(document.querySelectorAll("svg[aria-hidden] rect").length).toBeLessThan(200);
  const began = performance.now();
  fake.source.entry("r", 600, settled(now - 1, "c499", "s4"));
  fake.frame();
  await expect.element(row(/c499 completed/)).toBeVisible();
  // printed to be read, as machines differ
  // oxlint-disable-next-line no-console
  console.info(`timeline: 500 lanes, a new picture after ${(performance.now() - began).toFixed(1)} ms`);
});

test("it is accessible in light and dark, and so is the empty one", async () => {
  const { screen } = await opened();
  await expect.element(row(/progress c1/)).toBeVisible();
  await inBothThemes(() => expectAccessible());
  await screen.unmount();
  await opened("", []);
  await expect.element(page.getByText("Nothing in this span")).toBeVisible();
  await inBothThemes(() => expectAccessible());
});

test("when nothing happened in the last minute, the last one with activity is shown, and said", async () => {
  await opened("", [started(now - 900, "c1", "s1"), settled(now - 899, "c1", "s1"), started(now - 700, "c2", "s1", { tool: "later" }), settled(now - 699, "c2", "s1")]);
  await expect.element(row(/call later c2/)).toBeVisible();
  expect(row(/call progress c1/).query()).toBeNull();
  await expect.element(page.getByText(/^Nothing has happened since (\d+ \w+ )?\d\d:\d\d/)).toBeVisible();
  await page.getByRole("button", { name: "Fit all" }).click();
  await expect.element(row(/call progress c1/)).toBeVisible();
  await expect.element(row(/call later c2/)).toBeVisible();
  expect(Math.round(span())).toBe(Math.round(201 * 1.08));
  await page.getByRole("button", { name: "Follow" }).click();
  expect(row(/call progress c1/).query()).toBeNull();
});

test("what begins afterwards is followed again", async () => {
  const { fake } = await opened("", [started(now - 700, "c2", "s1"), settled(now - 699, "c2", "s1")]);
  await expect.element(row(/c2 completed/)).toBeVisible();
  fake.source.entry("r", 3, started(now - 1, "c3", "s1"));
  fake.frame();
  await expect.element(row(/c3 running/)).toBeVisible();
  await expect.element(page.getByText("live, the last", { exact: false })).toBeVisible();
  expect(row(/c2 completed/).query()).toBeNull();
});

test("one client can be shown in no more time than its lanes take", async () => {
  await opened();
  await page.getByRole("button", { name: "Fit s1 agent 1.2" }).click();
  await vi.waitFor(() => expect(span()).toBeCloseTo(2.5 * 1.08, 1));
});

test("the text of a cancellation lies beside its bar, also at the right border", async () => {
  await opened("", [
    started(now - 40, "c1", "s1"),
    { ...cancel(), at: now - 1.2 },
    settled(now - 1, "c1", "s1", { outcome: "cancelled", cancelled_by: "notification", scope_exit_ms: 200 }),
  ]);
  const text = page.getByText("cancelled by notification", { exact: true });
  await expect.element(text).toBeInTheDocument();
  const bar = text.element().closest("svg")?.querySelector("rect")?.getBoundingClientRect();
  expect(text.element().getBoundingClientRect().right).toBeLessThan(bar?.left ?? 0);
});
