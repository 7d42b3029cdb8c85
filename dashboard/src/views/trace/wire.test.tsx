import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { Story } from "~/testing/story";
import { answerApi, openView } from "~/testing/view";
import LiveView from "./live-view";

afterEach(() => vi.restoreAllMocks());

function Window({ children }: { children: ReactNode }) {
  return <div style={{ display: "grid", gridTemplateRows: "minmax(0, 1fr)", height: "800px" }}>{children}</div>;
}

async function opened(query: string, story: Story) {
  answerApi(() => undefined);
  const view = await openView(LiveView, "/live", `/live${query}`, Window);
  view.fake.source.hello("a");
  const say = () => {
    for (const entry of story.entries) view.fake.source.entry("a", entry.seq, entry);
    view.fake.frame();
  };
  say();
  return { ...view, say };
}

function twoCalls(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.call("s1", 1, 0, 3);
  story.request("s1", 2, "ping");
  return story;
}

const rows = () => page.getByRole("treegrid").getByRole("row");
const texts = () => [...document.querySelectorAll("[role=row][tabindex]")].map((row) => row.textContent);
const param = (name: string) => new URLSearchParams(location.search).get(name);
const drawer = () => page.getByRole("complementary");

test("a line for each exchange, oldest first, with its status and how it ended; the order is turned round in the address", async () => {
  await opened("", twoCalls());
  await expect.element(page.getByRole("treegrid", { name: "Exchanges, oldest first" })).toBeVisible();
  expect(texts().slice(1)).toEqual([expect.stringMatching(/s1 one.*tools\/call progress.*1200completed progress × 3 · done by s1/), expect.stringMatching(/ping.*2no answer yet/)]);
  await page.getByRole("button", { name: "oldest first" }).click();
  expect(param("order")).toBe("newest");
  await expect.poll(() => texts()[0]).toMatch("ping");
});

test("a line unfolds by click and by keyboard to its messages, and progress to each report", async () => {
  await opened("", twoCalls());
  await rows().nth(2).getByRole("button", { name: "Unfold" }).click();
  await expect.element(rows().nth(2)).toHaveAttribute("aria-expanded", "true");
  await expect.element(page.getByText("progress × 3", { exact: true })).toBeVisible();
  expect(page.getByText(/step 2/).query()).toBeNull();
  await page.getByText("progress × 3", { exact: true }).click();
  await expect.element(page.getByText(/step 2/)).toBeVisible();
  await rows().nth(2).click();
  await userEvent.keyboard("{Escape}{ArrowLeft}");
  await expect.element(rows().nth(2)).toHaveAttribute("aria-expanded", "false");
  await userEvent.keyboard("{ArrowRight}");
  await expect.element(rows().nth(2)).toHaveAttribute("aria-expanded", "true");
});

test("a line shows the message that was sent before anything else, and the back button leads out of it", async () => {
  await opened("", twoCalls());
  await rows().nth(2).click();
  await expect.element(drawer().getByRole("heading", { name: "#3 tools/call" })).toBeVisible();
  const [message, related, recorded] = ["message", "Related", "When, where and under what names it was recorded"].map((text) => drawer().getByText(text, { exact: true }).first().element().getBoundingClientRect().top);
  expect(message).toBeLessThan(related ?? 0);
  expect(related).toBeLessThan(recorded ?? 0);
  expect(drawer().getByText("monotonic").query()).toBeNull();
  await expect.element(drawer().getByRole("button", { name: "Copy as curl" })).toBeVisible();
  history.back();
  await expect.element(drawer()).not.toBeInTheDocument();
  expect([param("at"), location.pathname]).toEqual([null, "/dashboard/live"]);
});

test("the newest lines stay in view while they are followed, and a scroll away ends that", async () => {
  const story = new Story();
  for (let id = 0; id < 100; id += 1) story.request("s1", id, "ping");
  const { say } = await opened("", story);
  const grid = page.getByRole("treegrid").element();
  const distance = () => grid.scrollHeight - grid.clientHeight - grid.scrollTop;
  await expect.poll(distance).toBeLessThan(2);
  story.request("s1", 200, "ping");
  say();
  await expect.poll(distance).toBeLessThan(2);
  grid.scrollTop = 500;
  await expect.element(page.getByRole("button", { name: "Follow" })).toHaveAttribute("aria-pressed", "false");
  story.request("s1", 201, "ping");
  say();
  await expect.element(page.getByRole("button", { name: "↓ 1 new" })).toBeVisible();
  expect(grid.scrollTop).toBe(500);
  await page.getByRole("button", { name: "↓ 1 new" }).click();
  await expect.poll(distance).toBeLessThan(2);
  await expect.element(page.getByRole("button", { name: "Follow" })).toHaveAttribute("aria-pressed", "true");
});

test("it is accessible in light and dark, folded and open", { timeout: 60_000 }, async () => {
  await opened("", twoCalls());
  await rows().nth(2).getByRole("button", { name: "Unfold" }).click();
  await rows().nth(2).click();
  await inBothThemes(() => expectAccessible());
});
