import { expect, test } from "vitest";
import { read } from "~/protocol/filter";
import { at, brief, scalarText } from "~/protocol/json";
import type { Entry } from "~/protocol/schema";
import { Story } from "~/testing/story";
import { summaryOf } from "~/words/summary";
import { ExchangesOfRuns } from "./exchanges";
import { Known } from "./known";
import { type Line, merge, withFound } from "./merge";
import { RelationsOfRuns } from "./relations";
import { placeOf } from "./use-live-url";
import { wanted } from "./wanted";

const asLines = (entries: readonly Entry[], run = "a"): readonly Line[] =>
  entries.map((entry) => ({ type: "entry", key: `${run}-${entry.seq}`, run, entry }));

const relate = (lines: readonly Line[]) => new RelationsOfRuns().extend(lines);

const gap = (reason: "skipped" | "evicted", first: number, last: number): Line => ({
  type: "gap",
  key: `a-gap-${first}`,
  run: "a",
  gap: { reason, first, last },
});

function told(story: Story) {
  const lines = asLines(story.entries);
  const runs = relate(lines);
  const relations = runs.get("a");
  if (relations === undefined) throw new Error("there is no run");
  const entry = (seq: number) => {
    const found = relations.bySeq.get(seq);
    if (found === undefined) throw new Error(`there is no entry ${seq}`);
    return found;
  };
  const known = new Known("a", runs, []);
  /** Newest first. */
  const search = (line: string) => {
    const want = wanted(read(line), known);
    const { all } = new ExchangesOfRuns().group(lines, runs);
    const found = new Set(all.filter(want.around).flatMap((exchange) => exchange.entries.filter((each) => want.entry(each, "a"))));
    return { lines: lines.filter((each) => each.type === "entry" && found.has(each.entry)).toReversed() };
  };
  return { lines, runs, relations, entry, search, line: (seq: number) => summaryOf(entry(seq), relations.methodOf(entry(seq))) };
}

const seqs = (lines: readonly Line[]) => lines.map((line) => (line.type === "entry" ? line.entry.seq : `${line.gap.reason} ${line.gap.first}-${line.gap.last}`));

/** Two legacy clients and a modern one, all with the same ids and tokens but for their types. */
function threeClients(): Story {
  const story = new Story();
  story.opened("s1", "one");
  story.opened("s2", "two");
  story.opened("m1", "three", "2026-07-28");
  story.call("s1", 1, 0, 2);
  story.call("s2", "1", "0", 2);
  story.call("m1", 1, 0, 2);
  return story;
}

test("behind the place where one client's entries begin, left-out numbers are no gap", () => {
  const feed = asLines([2, 5, 9].map((seq) => ({ seq }) as Entry));
  const fetched = { run: "a", entries: [{ seq: 1 } as Entry], evicted: 0 };
  expect(seqs(merge(feed, fetched, 2))).toEqual([1, 2, 5, 9]);
  expect(seqs(merge(feed, fetched))).toEqual([1, 2, "passed 3-4", 5, "passed 6-8", 9]);
  expect(seqs(merge(feed.slice(1), fetched, 0))).toEqual([1, "passed 2-4", 5, 9]);
});

/** How far a message got, as far as these lines tell. */
const stateOf = (all: readonly Line[], seq: number) => {
  const relations = relate(all).get("a");
  const entry = relations?.bySeq.get(seq);
  return entry?.kind === "message.emitted" ? relations?.deliveryOf(entry) : undefined;
};

test("a message is delivered, not yet, or nobody can say", () => {
  const story = new Story();
  const of = { exchange: 1, session: "s1", stream: "p1" };
  const first = story.emit({ ...of, position: 1 }, { method: "x" });
  const second = story.emit({ ...of, position: 2 }, { method: "x" });
  const delivery = story.deliver(of, 1);
  story.deliver({ ...of, session: "s2" }, 2);
  const lines = asLines(story.entries);
  expect(stateOf(lines, first)).toMatchObject({ seq: delivery });
  expect(stateOf(lines, second)).toBe("not yet");
  expect(stateOf([...lines, gap("skipped", 5, 9)], second)).toBe("unknown");
});

test("relations grow with the list, and forget what left it", () => {
  const story = new Story();
  for (let id = 0; id < 3000; id += 1) story.call("s1", id, 0, 1);
  const lines = asLines(story.entries);
  const all = new RelationsOfRuns();
  const sizes = [];
  for (let end = 1000; end <= lines.length; end += 1000) sizes.push(all.extend(lines.slice(Math.max(0, end - 5000), end)).get("a")?.bySeq.size ?? 0);
  expect(sizes.slice(0, 6)).toEqual([1000, 2000, 3000, 4000, 5000, 6000]);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(16_000);
  expect(sizes.at(-1)).toBeGreaterThanOrEqual(5000);
});

test("what belongs to a call is found by it", () => {
  const { search, relations } = told(threeClients());
  const call = [...relations.calls.keys()][1] ?? "";
  const found = search(`call:${call}`).lines;
  expect(found.length).toBe(10);
  expect(found.every((line) => line.type === "entry" && line.entry.session === "s2")).toBe(true);
  expect(search("stream:s1/p1").lines.length).toBeGreaterThan(0);
  expect(search("stream:s2/p1").lines).toEqual([]);
});

const number = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => ({ seq: first + index, kind: "server.state", cause: null }) as unknown as Entry);

test("fetched entries fill a gap, and what is still missing stays one", () => {
  const items = [...asLines(number(1, 2)), gap("skipped", 3, 9), ...asLines(number(10, 11))];
  const merged = merge(items, { run: "a", entries: number(3, 5), evicted: 0 });
  expect(seqs(merged)).toEqual([1, 2, 3, 4, 5, "skipped 6-9", 10, 11]);
  expect(seqs(merge(items, { run: "a", entries: number(3, 9), evicted: 0 }))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(seqs(merge(items, { run: "a", entries: number(5, 6), evicted: 4 }))).toEqual([1, 2, "evicted 3-4", 5, 6, "skipped 7-9", 10, 11]);
  expect(merge(items, { run: "a", entries: [], evicted: 0 })).toBe(items);
});

test("older entries come before, without duplicates, and with a gap where the page kept only newer ones", () => {
  const items = asLines(number(10, 12));
  expect(seqs(merge(items, { run: "a", entries: number(7, 10), evicted: 0 }))).toEqual([7, 8, 9, 10, 11, 12]);
  expect(seqs(merge(items, { run: "a", entries: number(3, 5), evicted: 0 }))).toEqual([3, 4, 5, "passed 6-9", 10, 11, 12]);
  expect(seqs(merge([], { run: "a", entries: number(3, 5), evicted: 0 }))).toEqual([3, 4, 5]);
});

test("entries of another run are left where they are", () => {
  const items = [...asLines(number(1, 3), "old"), ...asLines(number(5, 6))];
  const merged = merge(items, { run: "a", entries: number(4, 4), evicted: 0 });
  expect(merged.map((line) => line.key)).toEqual(["old-1", "old-2", "old-3", "a-4", "a-5", "a-6"]);
});

test("a line says what its entry says", () => {
  const story = threeClients();
  const received = story.request("s1", 9, "tools/call", { name: "echo", arguments: { text: "hi" } });
  const refused = story.emit({ exchange: received.exchange, session: "s1", stream: null, position: null }, { id: 9, error: { code: -32602, message: "Unknown tool" } }, received.seq);
  const cancel = story.add({ kind: "message.received", rpc: "notification", method: "notifications/cancelled", id: null, message: { params: { requestId: "1", reason: "stop" } } });
  const settled = story.add({ kind: "call.settled", call: "c1", outcome: "cancelled", cancelled_by: "notification", steps_done: 5, steps_total: 100, duration_ms: 260, scope_exit_ms: 0.2, answered: false, sent_after_cancel: 0 });
  const limit = story.add({ kind: "limit.reached", session: null, limit: "max_tasks", value: 10 });
  const misuse = story.add({ kind: "client.misuse", session: "s1", what: "cancellation without effect", clause: "basic/utilities/cancellation", detail: "request 9", exchange: null });
  const problem = story.add({ kind: "http.response", exchange: 1, status: 404, content_type: "application/json", session: null, stream: null, problem: "unknown session" });
  const { line, search } = told(story);
  const one = (query: string) => line(Number(seqs(search(query).lines).at(-1)));
  expect(one("client:s1 method:tools/call kind:message").text).toBe('progress {"steps":2,"step_ms":50} · token 0');
  expect(one("client:s2 method:tools/call kind:message").text).toBe('progress {"steps":2,"step_ms":50} · token "0"');
  expect(one("client:s2 method:notifications/progress").text).toBe('1/2 "step 1" · token "0"');
  expect(line(refused)).toEqual({ mark: { text: "-32602", tone: "bad" }, text: "Unknown tool" });
  expect(line(cancel).text).toBe('request "1" · "stop"');
  expect(line(settled)).toEqual({ mark: { text: "cancelled", tone: "warn" }, text: "cancelled by notification · its scope exited 0.2 ms later · 5/100 steps · 260 ms · not answered" });
  expect(line(limit)).toEqual({ mark: { text: "max_tasks", tone: "bad" }, text: "at 10" });
  expect(line(misuse).text).toBe("request 9 · basic/utilities/cancellation");
  expect(line(problem)).toEqual({ mark: { text: "404", tone: "bad" }, text: "unknown session · application/json" });
});

test("connections and what becomes of draft streams are told, and what went wrong is a problem", () => {
  const story = threeClients();
  const opened = story.add({ kind: "connection.opened", connection: "w90", transport: "websocket", exchange: 90, client: "[::1]:9" });
  const piped = story.add({ kind: "connection.opened", connection: "i91", transport: "stdio", exchange: 91, client: "stdio" });
  const orderly = story.add({ kind: "connection.closed", connection: "w90", session: "s1", code: 1001, by: "idle", messages: 2 });
  const broken = story.add({ kind: "connection.closed", connection: "w90", session: "s1", code: 1006, by: "client", messages: 1 });
  const closed = story.add({ kind: "connection.closed", connection: "i91", session: null, code: null, by: "client", messages: 1 });
  const resumed = story.add({ kind: "stream.resumed", session: "s1", stream: "p7", exchange: 92, after: 3, waiting: 1 });
  const lost = story.add({ kind: "stream.lost", session: "s1", stream: "p7", why: "server_full", messages: 4 });
  const { line, search } = told(story);
  expect(line(opened)).toEqual({ mark: { text: "websocket", tone: "info" }, text: "w90 · from [::1]:9" });
  expect(line(piped).text).toBe("i91");
  expect(line(orderly)).toEqual({ mark: { text: "1001", tone: "neutral" }, text: "w90 · by idle · 2 messages" });
  expect(line(broken).mark).toEqual({ text: "1006", tone: "bad" });
  expect(line(closed)).toEqual({ text: "i91 · by client · 1 message" });
  expect(line(resumed)).toEqual({ mark: { text: "resumed", tone: "info" }, text: "p7 · after message 3 · 1 waiting" });
  expect(line(lost)).toEqual({ mark: { text: "server full", tone: "bad" }, text: "p7 · 4 messages never sent" });
  expect(seqs(search("problem:any").lines)).toEqual([lost, broken]);
  expect(seqs(search("connection:w90").lines)).toEqual([broken, orderly, opened]);
  expect(seqs(search("kind:stream,connection,websocket,stdio").lines).slice(0, 7)).toEqual([lost, resumed, closed, broken, orderly, piped, opened]);
});

test("messages of draft streams say which stream, and how it stands", () => {
  const story = new Story();
  const streamId = "rOKJS7803vuDvp7ULyKAxbtTgfJ0";
  const of = { exchange: 1, session: "s1", stream: "p1", position: 1 };
  const created = story.emit(of, { method: "notifications/stream/create", params: { stream: { streamId, resumeInterval: { min: 5, max: 3600 } } } });
  const ended = story.emit(of, { method: "notifications/stream/end", params: { streamId } });
  const poll = story.request("s1", 8, "stream/poll", { streamId });
  const one = { exchange: poll.exchange, session: "s1", stream: null, position: null };
  const flags = { pendingMessages: true, hasRequest: true, hasError: false };
  const polled = story.emit(one, { id: 8, result: { streamId, status: "live", ...flags } }, poll.seq);
  const resume = story.request("s1", 9, "stream/resume", { streamId, _meta: { "mcp-probe/stream": { received: 0 } } });
  const resumed = story.emit({ ...one, exchange: resume.exchange }, { id: 9, result: { streamId, status: "completed" } }, resume.seq);
  const all = story.request("s1", 10, "stream/poll/all", {});
  const several = story.emit({ ...one, exchange: all.exchange }, { id: 10, result: { streams: [{}, {}] } }, all.seq);
  const { line } = told(story);
  expect([created, ended, poll.seq, resume.seq].map((seq) => line(seq).text)).toEqual([
    "rOKJS780… · resume after 5 s, within 3600 s",
    "rOKJS780…",
    "rOKJS780…",
    "rOKJS780… · received 0",
  ]);
  expect(line(polled)).toEqual({ mark: { text: "live", tone: "good" }, text: "rOKJS780… · messages wait · a request among them" });
  expect(line(resumed)).toEqual({ mark: { text: "completed", tone: "good" }, text: "rOKJS780…" });
  expect(line(several).text).toBe("2 streams");
});

test("a kind that this page does not know is shown as it is", () => {
  const story = new Story();
  const seq = story.add({ kind: "of.the.future" as "server.state", news: 1 });
  const { line, search } = told(story);
  expect(line(seq).text).toContain('"news":1');
  expect(search("").lines.length).toBe(1);
});

test("ids keep their types, and a number that lost digits says so", () => {
  expect([0, "0", "", -1, 2 ** 53].map((id) => scalarText(id))).toEqual(["0", '"0"', '""', "-1", "≈9007199254740992"]);
});

test("a large value is not written out", () => {
  const deep = { list: Array.from({ length: 100_000 }, (_, index) => ({ index, text: "x".repeat(100) })), text: "y".repeat(1e6) };
  expect(brief(deep, 100).length).toBe(101);
  expect(brief({ a: [1, "b", null, true], c: {} })).toBe('{"a":[1,"b",null,true],"c":{}}');
  expect([at({ a: [{ b: 1 }] }, "a", 0, "b"), at({}, "toString"), at(null, "a")]).toEqual([1, undefined, undefined]);
});

test("a place is a number, with the run before it where it is known", () => {
  expect([placeOf("7"), placeOf("ab-12-7"), placeOf("x"), placeOf("-7"), placeOf("")]).toEqual([
    { run: null, seq: 7 },
    { run: "ab-12", seq: 7 },
    null,
    null,
    null,
  ]);
});

/** A call that a tool host runs, and is told to stop. */
function atHost() {
  const story = new Story();
  const asked = story.request("s1", 1, "tools/call", { name: "demo__export", arguments: { page: 1 } });
  const whose = { call: "c1", task: null, request_id: 1 };
  story.add({ kind: "call.started", ...whose, session: "s1", exchange: asked.exchange, method: "tools/call", tool: "demo__export", progress_token: null, cause: asked.seq });
  const of = { connection: "h3", session: "s1", call: "c1", host: "demo", dispatch: "d7" };
  const message = (direction: string, value: object, rpc: string, cause: number | null = null) => {
    const { method = null, id = null } = value as { method?: string; id?: string };
    return story.add({ kind: "host.message", connection: "h3", direction, call: "c1", session: "s1", rpc, method, id, message: value, cause });
  };
  const dispatch = message("sent", { id: "d7", method: "tool.dispatch", params: { tool: "export", arguments: { page: 1 } } }, "request");
  const expired = story.add({ kind: "dispatch.expired", call: "c1", session: "s1", deadline: "idle", elapsed_ms: 30_000, idle_ms: 30_000, ceiling_ms: 300_000, reports: 0 });
  const cancelled = story.add({ kind: "dispatch.cancelled", ...of, by: "deadline", reason: null });
  const cancel = message("sent", { method: "tool.cancel", params: { dispatch: "d7", cause: "deadline" } }, "notification");
  const answer = message("received", { id: "d7", error: { code: 2, message: "stopped" } }, "error", dispatch);
  const stopped = story.add({ kind: "dispatch.stopped", ...of, how: "acknowledged", after_ms: 12, late: 0 });
  return { story, dispatch, expired, cancelled, cancel, answer, stopped };
}

test("what a tool host does for a call is found by its connection, and an answer by its request", () => {
  const { story, dispatch, cancelled, cancel, answer, stopped } = atHost();
  const { search, relations, entry } = told(story);
  expect(relations.methodOf(entry(answer))).toBe("tool.dispatch");
  expect(relations.answerOf(dispatch)?.seq).toBe(answer);
  expect(seqs(search("method:tool.dispatch").lines)).toEqual([answer, dispatch]);
  expect(seqs(search("kind:host").lines)).toEqual([answer, cancel, dispatch]);
  expect(seqs(search("kind:host direction:in").lines)).toEqual([answer]);
  expect(seqs(search("connection:h3").lines)).toEqual([stopped, answer, cancel, cancelled, dispatch]);
});

test("a deadline that passed is a problem, that its host has stopped is none", () => {
  const { story, expired } = atHost();
  const failed = story.add({ kind: "host.message", connection: "h3", direction: "received", call: "c1", session: null, rpc: "error", method: null, id: "d8", message: { id: "d8", error: { code: 1, message: "no" } } });
  const of = { call: "c1", host: "demo", dispatch: "d8", session: null, after_ms: 1, late: 0 };
  const ends = ["unanswered", "host_gone"].map((how) => story.add({ kind: "dispatch.stopped", ...of, how }));
  const misuse = story.add({ kind: "host.misuse", connection: "h3", what: "not JSON", detail: "d" });
  const gone = { kind: "host.closed", connection: "h3", host: "demo", by: "client", late: 0 } as const;
  const closed = [story.add({ ...gone, code: 1006, failed: 0 }), story.add({ ...gone, code: 1000, failed: 1 })];
  story.add({ ...gone, code: 1000, failed: 0 });
  expect(seqs(told(story).search("problem:any").lines)).toEqual([...closed.toReversed(), misuse, ...ends.toReversed(), failed, expired]);
});

test("what a tool host is told and says is summed up", () => {
  const { story, dispatch, expired, cancel, answer, stopped } = atHost();
  const { line } = told(story);
  expect(line(dispatch)).toEqual({ text: 'export {"page":1}' });
  expect(line(expired)).toEqual({ mark: { text: "idle", tone: "bad" }, text: "silent for 30 s, the idle deadline, after 30.00 s and 0 reports" });
  expect(line(cancel).text).toBe("d7 · deadline");
  expect(line(answer)).toEqual({ mark: { text: "2", tone: "bad" }, text: "stopped" });
  expect(line(stopped)).toEqual({ mark: { text: "acknowledged", tone: "good" }, text: "host demo has stopped d7, 12 ms after tool.cancel" });
});

test("what a search found stands in its place, and fills what the feed left out", () => {
  const items = [...asLines(number(1, 2), "old"), ...asLines(number(5, 6)), gap("skipped", 7, 9), gap("evicted", 10, 10), ...asLines(number(11, 11))];
  const found = withFound(items, [...number(2, 2), ...number(6, 6), ...number(8, 8), ...number(12, 12)], "a");
  expect(found.map((line) => line.key)).toEqual(["old-1", "old-2", "a-2", "a-5", "a-6", "a-8", "a-gap-10", "a-11", "a-12"]);
  expect(withFound(items, [], "a")).toBe(items);
});

/** What is made of the last lines, when others were made before. */
const folded = (passes: readonly (readonly Line[])[]) => {
  const [relations, exchanges] = [new RelationsOfRuns(), new ExchangesOfRuns()];
  const made = passes.map((lines) => {
    const runs = relations.extend(lines);
    const answers = lines.map((line) => (line.type === "entry" ? runs.get(line.run)?.answerOf(line.entry.seq)?.seq : null));
    return { answers, wire: exchanges.group(lines, runs).wire };
  });
  return made.at(-1);
};

test("what belongs together is the same, however often React makes it, and also after lines that it gave up", () => {
  const story = new Story();
  story.opened("s1", "one");
  for (let id = 1; id <= 4; id += 1) story.call("s1", id, 0, 3);
  const all = asLines(story.entries);
  const half = all.slice(0, all.length / 2);
  expect(folded([half, all, all, half, all])).toEqual(folded([all]));
});
