import { afterEach, expect, test, vi } from "vitest";
import { page } from "vitest/browser";
import type { FakeFeed } from "~/testing/fake-source";
import { judgeReport, judgedRule, judgedSubject, serverThat } from "~/testing/judged";
import { callRow, countsRow, entry, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import { rowsOf } from "~/testing/views";
import type { Viewed } from "~/trace/entry";
import { JudgedProvider } from "~/trace/use-judged";
import CallsView from "~/views/calls/calls-view";
import TraceView from "~/views/trace/trace-view";

afterEach(() => vi.restoreAllMocks());

const RECEIVED = { exchange: 4, rpc: "request", method: "tools/call", id: 5, message: {} };

/** Has the feed bring entries with the rows of their exchanges. */
function play(fake: FakeFeed, run: string, entries: readonly Viewed[]): void {
  fake.source.say("rows", { table: "exchanges", rows: rowsOf(entries) });
  for (const each of entries) fake.source.entry(run, each.seq, each);
  fake.frame();
}

function answer() {
  return answerApi((at) => {
    if (at === "/api/server") return serverThat(true);
    if (at === "/api/judge") return judgeReport([judgedSubject([judgedRule()])]);
    if (at === "/api/calls/run.c1") return { call: callRow(), evidence: { events: [], exchanges: [], complete: true } };
    return at === "/api/events/7" ? entry(7, 0, "message.received", RECEIVED) : undefined;
  });
}

test("a request that a finding rests on leads to it, and no other does", async () => {
  answer();
  const { fake, show } = await openView(TraceView, "/trace", "/trace", JudgedProvider);
  show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  play(fake, "run", [entry(7, 0, "message.received", RECEIVED), entry(8, 0, "message.received", { ...RECEIVED, method: "ping", exchange: 5 })]);
  const mark = page.getByRole("link", { name: "✗ ping.answered" });
  await expect.element(mark).toHaveAttribute("href", "/dashboard/clients/acme#ping.answered");
  expect(mark.elements().length).toBe(1);
  expect(mark.element().closest("[role=row]")?.textContent).toMatch(/tools\/call/);
});

test("an entry of an earlier run of the server, with the same number, is not marked", async () => {
  answer();
  const { fake, show } = await openView(TraceView, "/trace", "/trace", JudgedProvider);
  show({ sessions: [sessionRow()] }, "earlier");
  play(fake, "earlier", [entry(7, 0, "message.received", RECEIVED)]);
  show({ sessions: [sessionRow()], counts: [countsRow()] }, "run");
  play(fake, "run", [entry(7, 0, "message.received", RECEIVED)]);
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
