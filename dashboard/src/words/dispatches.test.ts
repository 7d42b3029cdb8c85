import { expect, test } from "vitest";
import type { Entry } from "~/protocol/schema";
import { entry } from "~/testing/rows";
import { isMessage } from "~/trace/facts";
import { describeDispatch, dispatchOf } from "./dispatches";
import { describe } from "./summary";

const told = (kind: Entry["kind"], more: object) => describeDispatch(entry(1, 0, kind, more));
const AT_HOST = { host: "demo", dispatch: "d7", call: "c1" };

test("a dispatch is told in words from its beginning to its end", () => {
  const limits = { idle_ms: 30_000, ceiling_ms: 300_000 };
  expect(told("dispatch.sent", { ...AT_HOST, tool: "demo__export", ...limits })).toBe("to host demo as d7, idle deadline 30 s, ceiling 5 min 00 s");
  expect(told("dispatch.sent", { tool: "progress", host: null, dispatch: null, idle_ms: 2500, ceiling_ms: 9000 })).toBe(
    "to progress of this server, idle deadline 2.50 s, ceiling 9 s",
  );
  expect(told("dispatch.extended", { reports: 1, deadline: "idle", due_ms: 60_000 })).toBe(
    "by progress, 1 report so far; the idle deadline is next, 1 min 00 s after the start",
  );
  expect(told("dispatch.extended", { reports: 9, deadline: "ceiling", due_ms: 300_000 })).toMatch(/9 reports so far; the ceiling is next, 5 min/);
  const passed = { elapsed_ms: 45_000, reports: 3, ...limits };
  expect(told("dispatch.expired", { deadline: "idle", ...passed })).toBe("silent for 30 s, the idle deadline, after 45.00 s and 3 reports");
  expect(told("dispatch.expired", { deadline: "ceiling", ...passed })).toBe("the ceiling of 5 min 00 s has passed, after 45.00 s and 3 reports");
  const counts = { reports: 12, sent: 10, coalesced: 2, invalid: 1 };
  expect(told("dispatch.settled", { outcome: "timed_out", elapsed_ms: 2000, ...counts })).toBe(
    "timed out after 2.00 s, 12 reports, 10 sent to the client, 2 coalesced, 1 invalid",
  );
  expect(told("dispatch.settled", { outcome: "completed", elapsed_ms: 5, reports: 0, sent: 0, coalesced: 0, invalid: 0 })).toBe(
    "completed after 5 ms, 0 reports, 0 sent to the client",
  );
});

test("what became of a cancelled dispatch is told in words", () => {
  expect(told("dispatch.cancelled", { ...AT_HOST, by: "notification", reason: "stop" })).toBe('host demo is told to stop d7: the client "stop"');
  const end = (how: string, late = 0) => told("dispatch.stopped", { ...AT_HOST, how, after_ms: 12.3, late });
  expect(end("acknowledged")).toBe("host demo has stopped d7, 12 ms after tool.cancel");
  expect(end("answered", 1)).toBe("host demo did not stop d7 but came to its end, 12 ms after tool.cancel; 1 late message dropped");
  expect(end("unanswered", 3)).toBe("host demo has not said in 12 ms that d7 has stopped; its place is given back; 3 late messages dropped");
  expect(end("never_sent")).toBe("d7 was still waiting here; host demo never heard of it");
  expect(end("host_gone")).toBe("host demo was gone before it said that d7 has stopped");
  expect(end("something new")).toBe("d7 of host demo: something new");
  expect(told("dispatch.late", { ...AT_HOST, what: "result" })).toBe("host demo sent a result for d7, which is over; dropped");
});

test("tool hosts come and go in words", () => {
  expect(told("host.connected", { connection: "h3", client: "127.0.0.1:5", peer: null })).toBe("h3 from 127.0.0.1:5, not registered yet");
  const proxied = { connection: "h4", client: "203.0.113.1", peer: "127.0.0.1:5" };
  expect(told("host.connected", proxied)).toBe("h4 from 203.0.113.1 through 127.0.0.1:5, not registered yet");
  const names = { connection: "h3", host: "demo", tools: ["demo__a", "demo__b"] };
  expect(told("host.registered", { ...names, version: "1.4", library: "mcp-probe/0.1", replaced: "h2" })).toBe(
    "h3 is demo 1.4 (mcp-probe/0.1), in place of h2, with 2 tools: demo__a, demo__b",
  );
  expect(told("host.registered", { ...names, version: null, library: null, replaced: null })).toBe("h3 is demo, with 2 tools: demo__a, demo__b");
  expect(told("host.updated", { ...names, tools: ["demo__c"] })).toBe("demo offers 1 tool now: demo__c");
  expect(told("host.misuse", { connection: "h3", what: "not JSON", detail: "line 1" })).toBe("h3, not JSON: line 1");
  expect(told("host.closed", { ...names, code: 1006, by: "client", failed: 2, late: 1 })).toBe(
    "demo (h3), by client, code 1006, 2 calls failed with it, 1 late message dropped in all",
  );
  expect(told("host.closed", { connection: "h3", host: null, code: null, by: "shutdown", failed: 0, late: 0 })).toBe("a host without a name (h3), by server shutdown");
});

const message = (direction: string) => entry(1, 0, "host.message", { direction, rpc: "request", method: "tool.dispatch", id: "d7", message: { params: { tool: "export" } } });

test("a message of a tool host is a message", () => {
  expect(isMessage(message("sent"))).toBe(true);
  expect(describe(message("sent"), "tool.dispatch")).toBe('tool.dispatch request · id "d7" · export {}');
  expect(describeDispatch(message("sent"))).toBeNull();
});

test("the dispatch of a call is what its entries tell last", () => {
  const entries = [
    entry(1, 0, "call.started"),
    entry(2, 0, "dispatch.extended", { reports: 1 }),
    entry(3, 9, "dispatch.extended", { reports: 7 }),
  ];
  expect(dispatchOf(entries)).toMatchObject({ sent: null, extended: { reports: 7 }, expired: null, stopped: null });
  expect(dispatchOf(entries.slice(0, 1))).toBeNull();
});
