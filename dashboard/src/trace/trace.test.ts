import { expect, test } from "vitest";
import { entryOf, progressEntry, rowsOf, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { offsetOf, originOf, progressOf } from "./entry";
import { MOST, Trace } from "./trace";
import { entriesOf, entriesOfSpans, spansOf } from "./use-trace";

function following(story: Story, trace = new Trace(), run = "a"): Trace {
  const entries = withViews(story.entries);
  trace.begin(run, 0);
  trace.rows(rowsOf(entries, story.rows));
  // as it was when it was sent, that a message was received is told by the delivery
  for (const each of entries) trace.follow({ ...each, view: { ...each.view, delivered: null } });
  return trace;
}

function twoCalls(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.call("s1", 1, 0, 2);
  story.call("s1", 2, 1, 1);
  return story;
}

const shown = (trace: Trace, range: { from: number; until: number } | null = null) => spansOf(trace.view(), range).map(({ row }) => row.exchange);

test("exchanges are spans in the order in which they began, each with its head, its answer and its times by one clock", () => {
  const trace = following(twoCalls());
  const [first] = spansOf(trace.view(), null);
  expect(shown(trace)).toEqual([1, 2]);
  expect([first?.head?.seq, first?.answer?.seq]).toEqual([3, 12]);
  expect([first?.from, first?.until].map((at) => at?.toFixed(3))).toEqual(["1790000000.002", "1790000000.013"]);
});

test("a span is the same object until anything of it changes, also when its head comes behind its row", () => {
  const entries = withViews(twoCalls().entries);
  const trace = new Trace();
  trace.begin("a", 0);
  trace.rows(rowsOf(entries));
  const [before] = spansOf(trace.view(), null);
  expect(before?.head).toBeNull();
  for (const each of entries) trace.follow(each);
  const [after, other] = spansOf(trace.view(), null);
  expect(after?.head?.seq).toBe(3);
  trace.rows(rowsOf(entries).filter(({ exchange }) => exchange === 1));
  expect(spansOf(trace.view(), null)[1]).toBe(other);
});

test("a message is received once a delivery says so, and its entry is another one then", () => {
  const story = twoCalls();
  const trace = following(story);
  const [sent, taken] = [trace.entryOf("a", 7), trace.entryOf("a", 8)];
  expect([sent?.kind, sent?.view.delivered?.seq, taken?.view.delivers]).toEqual(["message.emitted", 8, [7]]);
  expect(trace.view().runs[0]?.entries[6]?.entry).toBe(sent);
});

test("requests and answers know each other, and a call has its entries wherever it goes on", () => {
  const trace = following(twoCalls());
  const request = trace.entryOf("a", 3);
  const answer = trace.entryOf("a", 12);
  if (request === undefined || answer === undefined) throw new Error("they are there");
  expect([trace.answerOf("a", request)?.seq, trace.requestOf("a", answer)?.seq, trace.requestOf("a", request)]).toEqual([12, 3, undefined]);
  trace.follow(entryOf(90, 0, "call.progressed", { call: "c1", exchange: null }));
  expect(trace.entriesOf("a", 1, "c1").at(-1)?.seq).toBe(90);
  expect(trace.entriesOf("a", 1).at(-1)?.seq).toBe(14);
});

const at = (ms: number) => 1_790_000_000 + ms / 1000;

test("only what reaches into a range of time is chosen", () => {
  const trace = following(twoCalls());
  expect(shown(trace, { from: at(0), until: at(13.5) })).toEqual([1]);
  expect(shown(trace, { from: at(13.5), until: at(99) })).toEqual([2]);
  expect(shown(trace, { from: at(12.5), until: at(15.5) })).toEqual([1, 2]);
  expect(entriesOf(trace.view(), { from: at(2.5), until: at(4.5) }).map(({ key }) => key)).toEqual(["a-3", "a-4"]);
});

test("a filter line shows what the server marks and what a search found, and forgets what others found", () => {
  const trace = following(twoCalls());
  const older = withViews([entryOf(500, 0, "message.received", { exchange: 77, rpc: "notification", method: "ping", id: null, message: {} })]).map((each) => Object.assign(each, { seq: -5 }));
  trace.filter("tool:x");
  expect(shown(trace)).toEqual([]);
  trace.add("a", { events: older, exchanges: rowsOf(older, { 77: { ended: { seq: -5, at: 0, mono: 0 } } }) });
  trace.found("a", "exchange", [77, 2]);
  trace.found("a", "entry", [4]);
  expect([shown(trace), entriesOf(trace.view(), null).map(({ key }) => key)]).toEqual([[77, 2], ["a-4"]]);
  const row = rowsOf(withViews(twoCalls().entries)).find(({ exchange }) => exchange === 2);
  if (row !== undefined) trace.rows([{ ...row, passes: false }]);
  expect(shown(trace)).toEqual([77]);
  trace.filter("");
  expect(shown(trace)).toEqual([1, 2]);
  expect(trace.entryOf("a", -5)).toBeUndefined();
});

test("gaps shrink to what is still missing, and older entries are added before the others", () => {
  const trace = new Trace();
  trace.begin("a", 8);
  trace.follow(entryOf(9, 0, "server.state"));
  trace.gap({ reason: "skipped", first: 10, last: 19 });
  trace.follow(entryOf(20, 1, "server.state"));
  const gaps = () => trace.view().runs[0]?.gaps.map(({ first, last }) => [first, last]);
  const [{ key } = { key: "" }] = trace.view().runs[0]?.gaps ?? [];
  trace.fill(key, 14);
  expect(gaps()).toEqual([[15, 19]]);
  trace.fill(key, 19);
  expect(gaps()).toEqual([]);
  trace.add("a", { events: [entryOf(5, -2, "server.state"), entryOf(7, -1, "server.state")], exchanges: [] }, 5);
  expect(entriesOf(trace.view(), null).map(({ entry: { seq } }) => seq)).toEqual([5, 7, 9, 20]);
});

test("the newest entries are kept, with the spans that reach into them", () => {
  const trace = new Trace();
  trace.begin("a", 0);
  const [open, over] = rowsOf(withViews([entryOf(1, 0, "message.received", { exchange: 1, rpc: "request", method: "a", id: 1, message: {} }), entryOf(2, 0, "message.received", { exchange: 2, rpc: "notification", method: "b", id: null, message: {} })]));
  if (open === undefined || over === undefined) throw new Error("there are two");
  trace.rows([open, { ...over, ended: { seq: 2, at: 0, mono: 0 } }]);
  for (let seq = 1; seq <= MOST + 4_000; seq += 1) trace.follow(entryOf(seq, seq, "server.state"));
  const [run] = trace.view().runs;
  expect([run?.entries.length, run?.entries.at(-1)?.key, trace.view().total, run?.spans.map(({ row }) => row.exchange)]).toEqual([MOST + 999, `a-${MOST + 4_000}`, MOST + 4_000, [1]]);
});

test("what a run was is kept beside the next one, with the clients of each", () => {
  const trace = following(twoCalls());
  const other = new Story();
  other.opened("s1", "two");
  following(other, trace, "b");
  expect(trace.view().runs.map(({ run, clients }) => [run, clients.get("s1")?.client_name])).toEqual([["a", "one"], ["b", "two"]]);
});

test("the entries of spans are those of their exchanges and of their calls", () => {
  const trace = following(twoCalls());
  trace.follow(entryOf(90, 0, "call.progressed", { call: "c1", exchange: null }));
  const [run] = trace.view().runs;
  const [first] = spansOf(trace.view(), null);
  if (run === undefined || first === undefined) throw new Error("they are there");
  expect(entriesOfSpans(run, [first]).map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 90]);
});

test("progress is read wherever it is reported, and nowhere else", () => {
  expect(progressOf(progressEntry(1, 0, 3, null))).toEqual({ progress: 3, total: null, message: null });
  expect(progressOf(entryOf(1, 0, "message.received", { rpc: "notification", method: "notifications/progress", message: {} }))).toBeNull();
  expect(progressOf(entryOf(1, 0, "call.progressed", { progress: 1, total: 2, message: "one" }))).toMatchObject({ progress: 1, total: 2, message: "one" });
});

test("times count from the start of the call, by the monotonic clock", () => {
  const [before, start] = [entryOf(1, -1.5, "http.request"), entryOf(2, 0, "call.started", { at: 0 })];
  expect(originOf([before, start])).toBe(start);
  expect(originOf([before])).toBe(before);
  expect(offsetOf(before, start)).toBe(-1.5);
});
