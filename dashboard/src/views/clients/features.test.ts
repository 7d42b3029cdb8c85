import { expect, test } from "vitest";
import type { Entry } from "~/protocol/schema";
import { callRow, entryOf, sessionRow } from "~/testing/rows";
import { capabilityLines, countResumed, declaredIn, declaredLines, differs, exercised } from "./features";

const state = (name: string, more: Partial<Parameters<typeof exercised>[0]>) =>
  exercised({ row: sessionRow(), calls: [], resumed: null, ...more }).find((feature) => feature.name === name);

test("what was asked for is exercised, the rest not yet, with the tool to call", () => {
  const row = sessionRow({ methods: { "tools/list": 2 } });
  expect(state("Tools listed", { row })).toMatchObject({ state: "exercised", count: 2 });
  expect(state("Sampling", { row })).toMatchObject({ state: "not yet", tools: ["sampling_demo"], declared: false });
  expect(state("Sampling", { row: sessionRow({ capabilities: { sampling: {} } }) })).toMatchObject({ declared: true });
});

test("each read of a skill counts, whichever it was", () => {
  const row = sessionRow({ methods: { "resources/read": 9 }, skills: { "skill://a/SKILL.md": 2, "skill://b/SKILL.md": 1 } });
  expect(state("Skills read", { row })).toMatchObject({ state: "exercised", count: 3 });
  expect(state("Skills read", { row: sessionRow({ methods: { "resources/read": 9 } }) })).toMatchObject({ state: "not yet" });
});

test("token 0 is a token, null is none", () => {
  expect(state("Progress: token sent", { calls: [callRow({ progress_token: 0 })] })).toMatchObject({ state: "exercised" });
  expect(state("Progress: token sent", { calls: [callRow({ progress_token: null })] })).toMatchObject({ state: "not yet" });
});

test("calls that the page does not have are not said to lack anything", () => {
  const calls = [callRow({ progress_token: null })];
  expect(state("Progress: token sent", { calls, more: true })).toMatchObject({ state: "unknown" });
  expect(state("Tasks created", { calls: [callRow({ task: "t1" })], more: true })).toMatchObject({ state: "exercised" });
});

test("a notification that had no effect is no cancellation", () => {
  const row = sessionRow({ methods: { "notifications/cancelled": 3 } });
  expect(state("Cancelled by notification", { row })).toMatchObject({ state: "not yet" });
  expect(state("Cancelled by notification", { row, calls: [callRow({ cancelled_by: "notification" })] })).toMatchObject({ count: 1 });
});

test("what only the other era has is said to be so", () => {
  expect(state("Cancelled by closing", {})).toMatchObject({ state: "not in this protocol" });
  expect(state("Cancelled by closing", { row: sessionRow({ era: "modern" }) })).toMatchObject({ state: "not yet" });
});

test("on a connection that carries everything both eras cancel both ways", () => {
  expect(state("Cancelled by closing", { row: sessionRow({ transport: "websocket" }) })).toMatchObject({ state: "not yet" });
  expect(state("Cancelled by notification", { row: sessionRow({ era: "modern", transport: "stdio" }) })).toMatchObject({ state: "not yet" });
  expect(state("Cancelled by notification", { row: sessionRow({ era: "modern" }) })).toMatchObject({ state: "not in this protocol" });
});

test("draft streams are for who declares them", () => {
  const row = sessionRow({ capabilities: { experimental: { streams: {} } }, methods: { "stream/resume": 2, "stream/poll/all": 1 } });
  expect(state("Draft streams resumed", { row })).toMatchObject({ state: "exercised", count: 2, declared: true });
  expect(state("Draft streams polled", { row })).toMatchObject({ state: "exercised", count: 1 });
  expect(state("Draft streams polled", {})).toMatchObject({ state: "not yet", declared: false });
});

test("what is not known is unknown", () => {
  expect(state("Streams resumed", {})).toMatchObject({ state: "unknown" });
  expect(state("Streams resumed", { resumed: 0 })).toMatchObject({ state: "not yet" });
});

test("declared capabilities are read as lines", () => {
  const declared = { elicitation: { form: {}, url: {} }, roots: { listChanged: true }, tasks: { requests: { sampling: { createMessage: {} } } }, sampling: {} };
  expect(capabilityLines(declared)).toEqual([
    ["elicitation", "form, url"],
    ["roots", "listChanged"],
    ["tasks", "requests.sampling.createMessage"],
    ["sampling", ""],
  ]);
});

const read = (stream: string | null, content_type = "text/event-stream") => ({ kind: "http.response", stream, content_type }) as Entry;

test("a second response for a stream resumes it", () => {
  expect(countResumed([read("p1"), read("p1"), read("p2"), read(null), read("p2", "application/json")])).toBe(1);
});

const resumed = (stream: string, exchange: number) => ({ kind: "stream.resumed", stream, exchange }) as Entry;
const head = (stream: string, exchange: number) => ({ ...read(stream), exchange }) as Entry;

test("a resumption that is told of twice counts once", () => {
  expect(countResumed([head("p1", 1), resumed("p1", 2), head("p1", 2), resumed("p1", 3)])).toBe(2);
});

const request = (seq: number, capabilities?: object, rpc = "request") =>
  entryOf(seq, seq, "message.received", { rpc, method: "tools/call", id: seq, message: { params: { _meta: { ...(capabilities && { "io.modelcontextprotocol/clientCapabilities": capabilities }) } } } });

test("capabilities are those of all requests, and say in how many", () => {
  const declared = declaredIn([request(1, { elicitation: { form: {} }, sampling: {} }), request(2, { elicitation: { url: {} } }), request(3, {}), request(4), request(5, { roots: {} }, "notification")], true);
  expect(declared.union).toEqual({ elicitation: { form: {}, url: {} }, sampling: {} });
  expect(declaredLines(declared)).toEqual([
    ["elicitation", "in 2 of 4 requests, with form in 1 of 4 requests, url in 1 of 4 requests"],
    ["sampling", "in 1 of 4 requests"],
  ]);
  expect(differs(declared)).toBe(true);
});

test("requests that agree are one line for each capability", () => {
  const declared = declaredIn([request(1, { elicitation: { form: {} } }), request(2, { elicitation: { form: {} } })], true);
  expect(declaredLines(declared)).toEqual([["elicitation", "in all 2 requests, with form"]]);
  expect(differs(declared)).toBe(false);
  expect(declaredLines(declaredIn([request(1, {})], true))).toEqual([]);
});
