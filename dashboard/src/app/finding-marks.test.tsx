import { afterEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import { judgeReport, judgedRule, judgedSubject, serverThat } from "~/testing/judged";
import { callRow, countsRow, entry, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { JudgedProvider } from "~/trace/use-judged";
import CallsView from "~/views/calls/calls-view";
import LiveView from "~/views/trace/live-view";

afterEach(() => vi.restoreAllMocks());

const RECEIVED = { exchange: 4, rpc: "request", method: "tools/call", id: 5, message: {} };

function answer() {
  return answerApi((at) => {
    if (at === "/api/server") return serverThat(true);
    if (at === "/api/judge") return judgeReport([judgedSubject([judgedRule()])]);
    if (at === "/api/calls/run.c1") return { call: callRow(), evidence: { events: [], complete: true } };
    return at === "/api/events/7" ? entry(7, 0, "message.received", RECEIVED) : undefined;
  });
}

test("an entry in Live that a finding rests on leads to it, and no other does", async () => {
  answer();
  const { fake, show } = await openView(LiveView, "/live", "/live", JudgedProvider);
  show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  fake.source.entry("run", 7, { kind: "message.received", ...RECEIVED });
  fake.source.entry("run", 8, { kind: "message.received", ...RECEIVED, method: "ping", exchange: 5 });
  fake.frame();
  const mark = page.getByRole("link", { name: "✗ ping.answered" });
  await expect.element(mark).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  expect(mark.elements().length).toBe(1);
  expect(mark.element().closest("[role=row]")?.textContent).toMatch(/tools\/call/);
});

test("an entry of an earlier run of the server, with the same number, is not marked", async () => {
  answer();
  const { fake, show } = await openView(LiveView, "/live", "/live", JudgedProvider);
  show({ sessions: [sessionRow()] }, "earlier");
  fake.source.entry("earlier", 7, { kind: "message.received", ...RECEIVED });
  show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  fake.source.entry("run", 7, { kind: "message.received", ...RECEIVED });
  fake.frame();
  await expect.element(page.getByRole("link", { name: "✗ ping.answered" })).toBeVisible();
  expect(page.getByRole("link", { name: "✗ ping.answered" }).elements().length).toBe(1);
});

const calls = [callRow(), callRow({ call: "c2", exchange: 9 })];

test("a call that a finding rests on leads to it in the list, and no other does", async () => {
  answer();
  const list = await openView(CallsView, "/calls/:id?", "/calls", JudgedProvider);
  list.show({ sessions: [sessionRow()], calls, counts: [countsRow()] }, "run");
  const mark = page.getByRole("link", { name: "✗ ping.answered" });
  await expect.element(mark).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  expect(mark.elements().length).toBe(1);
});

test("the page of a call that a finding rests on leads to it", async () => {
  answer();
  const { show } = await openView(CallsView, "/calls/:id?", "/calls/run.c1", JudgedProvider);
  show({ sessions: [sessionRow()], calls, counts: [countsRow()] }, "run");
  await expect.element(page.getByRole("link", { name: "✗ ping.answered" })).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  await expect.element(page.getByRole("paragraph").filter({ hasText: "Findings of the judge on it" })).toBeVisible();
});
