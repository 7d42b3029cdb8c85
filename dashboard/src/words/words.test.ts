import { expect, test } from "vitest";
import type { Entry } from "~/protocol/schema";
import { entryOf, progressEntry, withViews } from "~/testing/rows";
import { Story } from "~/testing/story";
import { dispatchOf, isMessage } from "~/trace/entry";
import { describe, summaryOf, titleOf } from "./entries";
import { sentenceOf, toneOfEnding } from "./spans";
import { clientOf } from "./text";

test.each([
  [{ label: null, client_name: "agent", client_version: "1.2" }, "agent 1.2"],
  [{ label: "lab", client_name: "agent", client_version: "1.2" }, "lab: agent 1.2"],
  [{ label: null, client_name: "agent", client_version: "" }, "agent"],
  [{ label: null, client_name: "", client_version: "" }, "no name given"],
  [{ label: "lab", client_name: "", client_version: "" }, "lab: no name given"],
])("a client is called by what is known of it", (client, name) => {
  expect(clientOf(client)).toBe(name);
});

const toldOfHosts = (kind: Entry["kind"], more: object) => summaryOf(entryOf(1, 0, kind, more), null).text;
const AT_HOST = { host: "demo", dispatch: "d7", call: "c1" };

test("a dispatch is told in words from its beginning to its end", () => {
  const limits = { idle_ms: 30_000, ceiling_ms: 300_000 };
  expect(toldOfHosts("dispatch.sent", { ...AT_HOST, tool: "demo__export", ...limits })).toBe("to host demo as d7, idle deadline 30 s, ceiling 5 min 00 s");
  expect(toldOfHosts("dispatch.sent", { tool: "progress", host: null, dispatch: null, idle_ms: 2500, ceiling_ms: 9000 })).toBe(
    "to progress of this server, idle deadline 2.50 s, ceiling 9 s",
  );
  expect(toldOfHosts("dispatch.extended", { reports: 1, deadline: "idle", due_ms: 60_000 })).toBe(
    "by progress, 1 report so far; the idle deadline is next, 1 min 00 s after the start",
  );
  expect(toldOfHosts("dispatch.extended", { reports: 9, deadline: "ceiling", due_ms: 300_000 })).toMatch(/9 reports so far; the ceiling is next, 5 min/);
  const passed = { elapsed_ms: 45_000, reports: 3, ...limits };
  expect(toldOfHosts("dispatch.expired", { deadline: "idle", ...passed })).toBe("silent for 30 s, the idle deadline, after 45.00 s and 3 reports");
  expect(toldOfHosts("dispatch.expired", { deadline: "ceiling", ...passed })).toBe("the ceiling of 5 min 00 s has passed, after 45.00 s and 3 reports");
  const counts = { reports: 12, sent: 10, coalesced: 2, invalid: 1 };
  expect(toldOfHosts("dispatch.settled", { outcome: "timed_out", elapsed_ms: 2000, ...counts })).toBe(
    "timed out after 2.00 s, 12 reports, 10 sent to the client, 2 coalesced, 1 invalid",
  );
  expect(toldOfHosts("dispatch.settled", { outcome: "completed", elapsed_ms: 5, reports: 0, sent: 0, coalesced: 0, invalid: 0 })).toBe(
    "completed after 5 ms, 0 reports, 0 sent to the client",
  );
});

test("what became of a cancelled dispatch is told in words", () => {
  expect(toldOfHosts("dispatch.cancelled", { ...AT_HOST, by: "notification", reason: "stop" })).toBe('host demo is told to stop d7 · cancelled by the client · "stop"');
  const end = (how: string, late = 0) => toldOfHosts("dispatch.stopped", { ...AT_HOST, how, after_ms: 12.3, late });
  expect(end("acknowledged")).toBe("host demo has stopped d7, 12 ms after tool.cancel");
  expect(end("answered", 1)).toBe("host demo did not stop d7 but came to its end, 12 ms after tool.cancel; 1 late message dropped");
  expect(end("unanswered", 3)).toBe("host demo has not said in 12 ms that d7 has stopped; its place is given back; 3 late messages dropped");
  expect(end("never_sent")).toBe("d7 was still waiting here; host demo never heard of it");
  expect(end("host_gone")).toBe("host demo was gone before it said that d7 has stopped");
  expect(end("something new")).toBe("d7 of host demo: something new");
  expect(toldOfHosts("dispatch.late", { ...AT_HOST, what: "result" })).toBe("host demo sent a result for d7, which is over; dropped");
});

test("tool hosts come and go in words", () => {
  expect(toldOfHosts("host.connected", { connection: "h3", client: "127.0.0.1:5", peer: null })).toBe("h3 from 127.0.0.1:5, not registered yet");
  const proxied = { connection: "h4", client: "203.0.113.1", peer: "127.0.0.1:5" };
  expect(toldOfHosts("host.connected", proxied)).toBe("h4 from 203.0.113.1 through 127.0.0.1:5, not registered yet");
  const names = { connection: "h3", host: "demo", tools: ["demo__a", "demo__b"] };
  expect(toldOfHosts("host.registered", { ...names, version: "1.4", library: "mcp-probe/0.1", replaced: "h2" })).toBe(
    "h3 is demo 1.4 (mcp-probe/0.1), in place of h2, with 2 tools: demo__a, demo__b",
  );
  expect(toldOfHosts("host.registered", { ...names, version: null, library: null, replaced: null })).toBe("h3 is demo, with 2 tools: demo__a, demo__b");
  expect(toldOfHosts("host.updated", { ...names, tools: ["demo__c"] })).toBe("demo offers 1 tool now: demo__c");
  expect(toldOfHosts("host.misuse", { connection: "h3", what: "not JSON", detail: "line 1" })).toBe("h3, not JSON: line 1");
  expect(toldOfHosts("host.closed", { ...names, code: 1006, by: "client", failed: 2, late: 1 })).toBe(
    "demo (h3), by client, code 1006, 2 calls failed with it, 1 late message dropped in all",
  );
  expect(toldOfHosts("host.closed", { connection: "h3", host: null, code: null, by: "shutdown", failed: 0, late: 0 })).toBe("a host without a name (h3), by shutdown");
});

const message = (direction: string) => entryOf(1, 0, "host.message", { direction, rpc: "request", method: "tool.dispatch", id: "d7", message: { params: { tool: "export" } } });

test("a message of a tool host is a message", () => {
  expect(isMessage(message("sent"))).toBe(true);
  expect(describe(message("sent"), "tool.dispatch")).toBe('tool.dispatch request · id "d7" · export {}');
});

test("the dispatch of a call is what its entries tell last", () => {
  const entries = [
    entryOf(1, 0, "call.started"),
    entryOf(2, 0, "dispatch.extended", { reports: 1 }),
    entryOf(3, 9, "dispatch.extended", { reports: 7 }),
  ];
  expect(dispatchOf(entries)).toMatchObject({ sent: null, extended: { reports: 7 }, expired: null, stopped: null });
  expect(dispatchOf(entries.slice(0, 1))).toBeNull();
});

const told = (kind: Entry["kind"], more: object, method: string | null = null) => describe(entryOf(1, 0, kind, more), method);

test("a report of progress that was not sent says why", () => {
  const dropped = progressEntry(1, 0, 3, 10, { kind: "message.dropped", why: "no stream is open" });
  expect(describe(dropped, "notifications/progress")).toBe("notifications/progress not sent · no stream is open · 3/10 · token 0");
  expect(told("call.progressed", { progress: 1, total: null, message: "one" })).toBe('1 "one" · without a token');
});

test("ids keep their type", () => {
  const request = { rpc: "request", method: "ping", message: {} };
  expect(told("message.received", { ...request, id: 0 }, "ping")).toBe("ping request · id 0");
  expect(told("message.received", { ...request, id: "0" }, "ping")).toBe('ping request · id "0"');
});

test("a cancellation says who, how long it took, how far it got, and what was sent afterwards", () => {
  const settled = { outcome: "cancelled", answered: false, duration_ms: 400, cancelled_by: "notification", scope_exit_ms: 2.067, steps_done: 4, steps_total: 10, sent_after_cancel: 1 };
  expect(told("call.settled", settled)).toBe(
    "cancelled · by the client · after 4/10 steps · stopped in 2.1 ms · 1 message sent afterwards · 400 ms · no answer, as the cancellation asks",
  );
  expect(told("call.cancelled", { by: "disconnect", reason: null, effect: false })).toBe("by disconnect · without effect: it was over already");
});

test.each([
  [{ state: "cancelled", text: "by the client", sent_after: 0 }, "cancelled by the client", "violet"],
  [{ state: "cancelled", text: "by the client", sent_after: 2 }, "cancelled by the client", "bad"],
  [{ state: "tool_error", text: "no such file", sent_after: 0 }, "tool error: no such file", "bad"],
  [{ state: "protocol_error", text: "-32602: no such tool", sent_after: 0 }, "protocol error -32602: no such tool", "bad"],
  [{ state: "completed", text: "", sent_after: 0 }, "completed", "good"],
])("an ending is a sentence, and only what went wrong is bad: %o", (ending, sentence, tone) => {
  expect([sentenceOf(ending), toneOfEnding(ending)]).toEqual([sentence, tone]);
});

test("what came in and could not be used is told in words", () => {
  const bytes = { fault: "syntax", problem: "it ends too early", head: "{no", size: 3 };
  expect(told("message.unreadable", { ...bytes, declared: 3 })).toBe("syntax · it ends too early · 3 bytes · {no");
  expect(told("message.unreadable", { ...bytes, declared: 9 })).toBe("syntax · it ends too early · 3 of 9 bytes came · {no");
  expect(told("message.refused", { refusal: "unknown_method", problem: "there is no such method" })).toBe("unknown_method · there is no such method");
});

test("what happens on a connection beside its messages is told in words", () => {
  expect(told("socket.opened", { client: "127.0.0.1:9" })).toBe("TCP connection from 127.0.0.1:9");
  expect(told("socket.closed", { by: "client", requests: 2 })).toBe("by client · 2 requests");
  expect(told("socket.refused", { status: 431, why: "the head is too long" })).toBe("431 · the listener refused it: the head is too long");
  expect(told("socket.refused", { status: null, why: "too many" })).toBe("closed · the listener refused it: too many");
  const frame = { direction: "received", opcode: "ping", size: 4 };
  expect(told("websocket.frame", { ...frame, refused: null })).toBe("ping frame received · 4 bytes");
  expect(told("websocket.frame", { ...frame, refused: "too large" })).toBe("refused · ping frame received · 4 bytes · too large");
  expect(told("stdio.changed", { what: "end_of_input", pid: 7, status: null, stderr_lines: 1 })).toBe("end of input · process 7 · 1 line on standard error");
  expect(told("stdio.changed", { what: "exit", pid: 7, status: 0, stderr_lines: 0 })).toBe("exit · process 7 · exit status 0 · 0 lines on standard error");
  const client = { pid: 9, status: null, signal: null, asked: null };
  expect(told("client.process", { ...client, what: "started", asked: "client http://localhost/mcp" })).toBe("started · process 9 · client http://localhost/mcp");
  expect(told("client.process", { ...client, what: "exited", signal: "SIGKILL" })).toBe("exited · process 9 · SIGKILL");
  expect(told("client.process", { ...client, what: "exited", status: 0 })).toBe("exited · process 9 · exit status 0");
  expect(told("stream.control", { what: "priming", event_id: "p1-0", retry_ms: null })).toBe("priming · an event with an id and no data was sent · id p1-0");
  expect(told("stream.control", { what: "retry", event_id: null, retry_ms: 500 })).toBe("retry · the client was told when to connect again · retry after 500 ms");
});

test("a message is named by its method, anything else by its kind in words", () => {
  expect(titleOf(entryOf(1, 0, "message.emitted", { rpc: "response", method: null, id: 1, message: {} }), "ping")).toBe("ping response");
  expect(titleOf(entryOf(1, 0, "http.request"), null)).toBe("HTTP request");
  expect(titleOf(entryOf(1, 0, "stream.opened"), null)).toBe("stream opened");
});

/** What the entries of a story say, by their numbers. */
function lines(story: Story) {
  const entries = withViews(story.entries);
  return (seq: number) => {
    const found = entries.find((each) => each.seq === seq);
    if (found === undefined) throw new Error(`there is no entry ${seq}`);
    return summaryOf(found, found.view.method);
  };
}

test("a line says what its entry says", () => {
  const story = new Story();
  story.call("s1", 1, 0, 2);
  story.call("s2", "1", "0", 2);
  const received = story.request("s1", 9, "tools/call", { name: "echo", arguments: { text: "hi" } });
  const refused = story.emit({ exchange: received.exchange, session: "s1", stream: null, position: null }, { id: 9, error: { code: -32602, message: "Unknown tool" } }, received.seq);
  const cancel = story.add({ kind: "message.received", rpc: "notification", method: "notifications/cancelled", id: null, message: { params: { requestId: "1", reason: "stop" } } });
  const limit = story.add({ kind: "limit.reached", session: null, limit: "max_tasks", value: 10 });
  const misuse = story.add({ kind: "client.misuse", session: "s1", what: "cancellation without effect", clause: "basic/utilities/cancellation", detail: "request 9", exchange: null });
  const problem = story.add({ kind: "http.response", exchange: 1, status: 404, content_type: "application/json", session: null, stream: null, problem: "unknown session" });
  const line = lines(story);
  expect([2, 15].map((seq) => line(seq).text)).toEqual(['progress {"steps":2,"step_ms":50} · token 0', 'progress {"steps":2,"step_ms":50} · token "0"']);
  expect(line(19).text).toBe('1/2 "step 1" · token "0"');
  expect(line(refused)).toEqual({ mark: { text: "-32602", tone: "bad" }, text: "Unknown tool" });
  expect(line(cancel).text).toBe('request "1" · "stop"');
  expect(line(limit)).toEqual({ mark: { text: "max_tasks", tone: "bad" }, text: "at 10" });
  expect(line(misuse).text).toBe("request 9 · basic/utilities/cancellation");
  expect(line(problem)).toEqual({ mark: { text: "404", tone: "bad" }, text: "unknown session · application/json" });
});

test("connections and what becomes of draft streams are told", () => {
  const story = new Story();
  const opened = story.add({ kind: "connection.opened", connection: "w90", transport: "websocket", exchange: 90, client: "[::1]:9" });
  const piped = story.add({ kind: "connection.opened", connection: "i91", transport: "stdio", exchange: 91, client: "stdio" });
  const orderly = story.add({ kind: "connection.closed", connection: "w90", session: "s1", code: 1001, by: "idle", messages: 2 });
  const broken = story.add({ kind: "connection.closed", connection: "w90", session: "s1", code: 1006, by: "client", messages: 1 });
  const closed = story.add({ kind: "connection.closed", connection: "i91", session: null, code: null, by: "client", messages: 1 });
  const resumed = story.add({ kind: "stream.resumed", session: "s1", stream: "p7", exchange: 92, after: 3, waiting: 1 });
  const lost = story.add({ kind: "stream.lost", session: "s1", stream: "p7", why: "server_full", messages: 4 });
  const line = lines(story);
  expect(line(opened)).toEqual({ mark: { text: "websocket", tone: "info" }, text: "w90 · from [::1]:9" });
  expect(line(piped).text).toBe("i91");
  expect(line(orderly)).toEqual({ mark: { text: "1001", tone: "neutral" }, text: "w90 · by idle · 2 messages" });
  expect(line(broken).mark).toEqual({ text: "1006", tone: "bad" });
  expect(line(closed)).toEqual({ text: "i91 · by client · 1 message" });
  expect(line(resumed)).toEqual({ mark: { text: "resumed", tone: "info" }, text: "p7 · after message 3 · 1 waiting" });
  expect(line(lost)).toEqual({ mark: { text: "server full", tone: "bad" }, text: "p7 · 4 messages never sent" });
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
  const line = lines(story);
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

/** A call that a tool host runs, and is told to stop. */
function atHost() {
  const story = new Story();
  const asked = story.request("s1", 1, "tools/call", { name: "demo__export", arguments: { page: 1 } });
  const whose = { call: "c1", task: null, request_id: 1 };
  story.add({ kind: "call.started", ...whose, session: "s1", exchange: asked.exchange, method: "tools/call", tool: "demo__export", progress_token: null, cause: asked.seq });
  const of = { connection: "h3", session: "s1", call: "c1", host: "demo", dispatch: "d7" };
  const exchanged = (direction: string, value: object, rpc: string, cause: number | null = null) => {
    const { method = null, id = null } = value as { method?: string; id?: string };
    return story.add({ kind: "host.message", connection: "h3", direction, call: "c1", session: "s1", rpc, method, id, message: value, cause });
  };
  const dispatch = exchanged("sent", { id: "d7", method: "tool.dispatch", params: { tool: "export", arguments: { page: 1 } } }, "request");
  const expired = story.add({ kind: "dispatch.expired", call: "c1", session: "s1", deadline: "idle", elapsed_ms: 30_000, idle_ms: 30_000, ceiling_ms: 300_000, reports: 0 });
  const cancelled = story.add({ kind: "dispatch.cancelled", ...of, by: "deadline", reason: null });
  const cancel = exchanged("sent", { method: "tool.cancel", params: { dispatch: "d7", cause: "deadline" } }, "notification");
  const answer = exchanged("received", { id: "d7", error: { code: 2, message: "stopped" } }, "error", dispatch);
  const stopped = story.add({ kind: "dispatch.stopped", ...of, how: "acknowledged", after_ms: 12, late: 0 });
  return { story, dispatch, expired, cancelled, cancel, answer, stopped };
}

test("what a tool host is told and says is summed up", () => {
  const { story, dispatch, expired, cancel, answer, stopped } = atHost();
  const line = lines(story);
  expect(line(dispatch)).toEqual({ text: 'export {"page":1}' });
  expect(line(expired)).toEqual({ mark: { text: "idle", tone: "bad" }, text: "silent for 30 s, the idle deadline, after 30.00 s and 0 reports" });
  expect(line(cancel).text).toBe("d7 · deadline");
  expect(line(answer)).toEqual({ mark: { text: "2", tone: "bad" }, text: "stopped" });
  expect(line(stopped)).toEqual({ mark: { text: "acknowledged", tone: "good" }, text: "host demo has stopped d7, 12 ms after tool.cancel" });
});

test("a kind that this page does not know is shown as it is", () => {
  const story = new Story();
  const seq = story.add({ kind: "of.the.future" as "server.state", news: 1 });
  expect(lines(story)(seq).text).toContain('"news":1');
});
