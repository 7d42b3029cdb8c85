import { expect, test } from "vitest";
import type { Entry } from "~/protocol/schema";
import { Story } from "~/testing/story";
import { curlOfRequest } from "~/words/curl";
import { askedBy, endingOf } from "./exchange-text";
import { ExchangesOfRuns, factsOf } from "./exchanges";
import type { Line } from "./merge";
import { RelationsOfRuns } from "./relations";
import { entryOf, isOpen, levelOf, rowsOf } from "./wire-rows";

const asLines = (entries: readonly Entry[], run = "a"): readonly Line[] => entries.map((entry) => ({ type: "entry", key: `${run}-${entry.seq}`, run, entry }));

function grouped(lines: readonly Line[], exchanges = new ExchangesOfRuns()) {
  const runs = new RelationsOfRuns().extend(lines);
  const { wire } = exchanges.group(lines, runs);
  const list = wire.flatMap((line) => (line.type === "exchange" ? [line.exchange] : []));
  const asked = list.map((exchange) => {
    const { method, rpc, text } = askedBy(exchange, runs.get(exchange.run)?.methodOf(factsOf(exchange).head) ?? null);
    return [method, rpc, text].filter((part) => part !== null && part !== "").join(" ");
  });
  return { wire, list, asked, ends: list.map((exchange) => endingOf(exchange)) };
}

test("entries of an exchange are one line wherever they stand in the log, in the order in which exchanges began", () => {
  const story = new Story();
  story.opened("s1", "one");
  const first = story.request("s1", 1, "tools/list");
  const second = story.request("s1", 2, "ping");
  story.emit({ exchange: second.exchange, session: "s1", stream: null, position: null }, { id: 2, result: {} }, second.seq);
  story.emit({ exchange: first.exchange, session: "s1", stream: null, position: null }, { id: 1, result: { tools: [{}, {}] } }, first.seq);
  const { asked, ends, list } = grouped(asLines(story.entries));
  expect(asked).toEqual(["tools/list", "ping"]);
  expect(ends[0]).toEqual({ mark: null, text: "2 tools" });
  expect(list.map((exchange) => exchange.entries.length)).toEqual([3, 3]);
});

test("what is not on the wire makes no line, and the numbers of two runs are not mixed up", () => {
  const story = new Story();
  story.add({ kind: "server.state", state: "ready" });
  story.add({ kind: "socket.opened", connection: "tcp1", client: "127.0.0.1:1" });
  story.request("s1", 1, "ping");
  const { list } = grouped([...asLines(story.entries, "old"), ...asLines(story.entries, "new")]);
  expect(list.map(({ key, run }) => [key, run])).toEqual([
    ["old-x1", "old"],
    ["new-x1", "new"],
  ]);
});

test("a question to a tool host and its answer are one line, as their cause says", () => {
  const story = new Story();
  const host = (direction: string, message: object, rpc: string, cause: number | null) => story.add({ kind: "host.message", connection: "h3", direction, rpc, method: (message as { method?: string }).method ?? null, id: "d7", message, cause });
  const asked = host("sent", { id: "d7", method: "tool.dispatch", params: { tool: "export", arguments: {} } }, "request", null);
  story.add({ kind: "message.received", exchange: null, rpc: "notification", method: "x", id: null, message: {} });
  host("received", { id: "d7", result: {} }, "response", asked);
  expect(grouped(asLines(story.entries)).list.map((exchange) => exchange.entries.length)).toEqual([2, 1]);
});

test("how an exchange ended is said in a line", () => {
  const story = new Story();
  story.call("s1", 1, 0, 3);
  story.call("m1", 2, 0, 5, "cancelled");
  const unknown = story.request("s1", 3, "tools/call", { name: "nope", arguments: {} });
  story.emit({ exchange: unknown.exchange, session: "s1", stream: null, position: null }, { id: 3, error: { code: -32602, message: "Unknown tool: nope" } }, unknown.seq);
  const refused = story.request("s1", 4, "ping");
  story.add({ kind: "http.response", exchange: refused.exchange, status: 400, content_type: "application/json", problem: "Mcp-Name is missing", refusal: "HEADER_MISMATCH", headers: [] });
  const late = story.request("s1", 5, "ping");
  story.add({ kind: "client.misuse", session: "s1", what: "id used before", clause: "c", detail: "id 5 of ping", exchange: late.exchange });
  story.request("s1", 6, "ping");
  expect(grouped(asLines(story.entries)).ends).toEqual([
    { mark: { text: "completed", tone: "good" }, text: "progress × 3 · done by s1" },
    { mark: { text: "cancelled", tone: "warn" }, text: "by notification · 5/5 steps · stopped in 0.2 ms" },
    { mark: { text: "-32602", tone: "bad" }, text: "Unknown tool: nope" },
    { mark: { text: "refused", tone: "bad" }, text: "Mcp-Name is missing" },
    { mark: { text: "id used before", tone: "warn" }, text: "id 5 of ping" },
    { mark: { text: "no answer yet", tone: "neutral" }, text: "" },
  ]);
});

test("an event stream takes as long as it is open, an answer in one piece until it is delivered", () => {
  const story = new Story();
  story.call("s1", 1, 0, 1);
  const one = story.request("s1", 2, "ping");
  story.emit({ exchange: one.exchange, session: "s1", stream: null, position: null }, { id: 2, result: {} }, one.seq);
  story.deliver({ exchange: one.exchange, session: "s1", stream: null }, 1);
  const durations = () => grouped(asLines(story.entries)).list.map((exchange) => factsOf(exchange).duration);
  expect(durations()).toEqual([null, expect.closeTo(3)]);
  story.add({ kind: "http.closed", exchange: 1, by: "end of stream", messages: 2 });
  expect(durations()[0]).toBeGreaterThan(3);
});

test("what has not changed is the same object the next time, and what has is another", () => {
  const story = new Story();
  story.request("s1", 1, "ping");
  const waiting = story.request("s1", 2, "ping");
  const exchanges = new ExchangesOfRuns();
  const before = grouped(asLines(story.entries), exchanges).wire;
  story.emit({ exchange: waiting.exchange, session: "s1", stream: null, position: null }, { id: 2, result: {} }, waiting.seq);
  const after = grouped(asLines(story.entries), exchanges).wire;
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
});

test("an open exchange shows its messages; reports of progress that follow each other are one row, which opens too", () => {
  const story = new Story();
  story.call("s1", 1, 0, 3);
  const { wire } = grouped(asLines(story.entries));
  const [line] = wire;
  if (line?.type !== "exchange") throw new Error("there is an exchange");
  expect([isOpen(line, new Set()), rowsOf(wire, new Set()).length]).toEqual([false, 1]);
  const open = rowsOf(wire, new Set([line.key]));
  const shown = (rows: typeof open) => rows.map((row) => [levelOf(row), row.type, entryOf(row)?.entry.kind ?? null]);
  expect(shown(open)).toEqual([
    [1, "exchange", "message.received"],
    [2, "message", "http.request"],
    [2, "message", "message.received"],
    [2, "message", "http.response"],
    [2, "progress", null],
    [2, "message", "message.emitted"],
  ]);
  const progress = open[4];
  if (progress?.type !== "progress") throw new Error("there is progress");
  expect(progress.entries.length).toBe(3);
  const all = rowsOf(wire, new Set([line.key, progress.key]));
  expect(shown(all).slice(5, 8)).toEqual(Array.from({ length: 3 }, () => [3, "message", "message.emitted"]));
});

test("a request can be sent again by curl: what the log hides is a variable, and quotes are safe", () => {
  const story = new Story();
  const { exchange } = story.request("s1", 1, "tools/call", { name: "echo", arguments: { text: "it's" } });
  const [request, received] = story.entries;
  if (request?.kind !== "http.request" || received === undefined) throw new Error("there is a request");
  const whole = { ...request, exchange, query: "tools=all", hidden: ["authorization"], headers: [["host", "x"], ["authorization", "[hidden]"], ["mcp-session-id", "8HqG…"], ["accept", "text/event-stream"]] as [string, string][] };
  expect(curlOfRequest(whole, [whole, received], "http://127.0.0.1:8000")).toBe(
    [
      "curl -N 'http://127.0.0.1:8000/mcp?tools=all'",
      `  -H 'authorization: '"$AUTHORIZATION"`,
      `  -H 'mcp-session-id: '"$MCP_SESSION_ID"`,
      "  -H 'accept: text/event-stream'",
      String.raw`  --data-raw '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"it'\''s"}}}'`,
    ].join(" \\\n"),
  );
  expect(curlOfRequest({ ...whole, method: "GET" }, [whole], "http://127.0.0.1:8000")).toMatch(/^curl -N -X 'GET' 'http/);
});
