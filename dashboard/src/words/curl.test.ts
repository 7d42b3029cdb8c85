import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { callRow, entryOf } from "~/testing/rows";
import { Story } from "~/testing/story";
import { curlOfCall, curlOfRequest } from "./curl";

const ADDRESS = "http://127.0.0.1:8000/mcp";
const modern = callRow({ era: "modern", revision: "2026-07-28", session: "m1" });
const MESSAGE = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "progress", arguments: { label: "it's" } } };

const request = (headers: readonly (readonly string[])[], more: object = {}) =>
  entryOf(1, -2, "http.request", { method: "POST", path: "/mcp", query: "", headers, hidden: [], ...more });
const received = (more: object = {}) => entryOf(2, -1, "message.received", { rpc: "request", method: "tools/call", id: 7, message: MESSAGE, cause: 1, hidden: [], ...more });

test("a modern call is repeated with the headers that it had, also wrong ones", () => {
  const headers = [["host", "x"], ["content-length", "9"], ["mcp-method", "tools/call"], ["mcp-name", "other"]];
  expect(curlOfCall(modern, [request(headers, { query: "client=lab" }), received()], ADDRESS)).toBe(
    [
      `curl -N '${ADDRESS}?client=lab' \\`,
      "  -H Content-Type:application/json -H Accept:application/json,text/event-stream \\",
      "  -H mcp-method:tools/call -H mcp-name:other \\",
      `  -d '${JSON.stringify(MESSAGE, null, 2).replace("'", String.raw`'\''`)}'`,
    ].join("\n"),
  );
});

test("without its entries, the row makes the message and its headers", () => {
  const made = curlOfCall(modern, [], ADDRESS) ?? "";
  expect(made).toContain("-H MCP-Protocol-Version:2026-07-28 -H Mcp-Method:tools/call -H Mcp-Name:progress");
  const body = JSON.parse(/-d '([^]*)'$/.exec(made)?.[1] ?? "") as object;
  expect(body).toMatchObject({ id: 5, params: { name: "progress", arguments: { steps: 10 }, _meta: { progressToken: 0, "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
});

test("a call of the older revisions opens a session first, and never sends the id that was cut", () => {
  const made = curlOfCall(callRow(), [request([["mcp-session-id", "abc…"], ["mcp-protocol-version", "2025-11-25"]]), received()], ADDRESS) ?? "";
  expect(made).toMatch(/^U='http:[^]*S=\$\(curl -si "\$U" [^]*"protocolVersion": ?"2025-11-25"[^]*notifications\/initialized/);
  expect(made).toContain(`-H "Mcp-Session-Id: $S" -H mcp-protocol-version:2025-11-25`);
  expect(made).not.toContain("abc…");
});

test("what the log hides is named", () => {
  const made = curlOfCall(modern, [request([], { hidden: ["authorization"] }), received({ hidden: [["/params/arguments/token", "string"]] })], ADDRESS) ?? "";
  expect(made).toMatch(/^# hidden in the log, to be filled in: "\/params\/arguments\/token", "authorization"\ncurl/);
});

test("no name or version that a client chose is a command of its own", () => {
  const path = "/params/arguments/x\nreboot\n#/password";
  const made = curlOfCall({ ...modern, revision: "1; reboot" }, [received({ hidden: [[path, "string"]] })], ADDRESS) ?? "";
  expect(made.split("\n")).not.toContain("reboot");
  expect(made).toContain("-H 'MCP-Protocol-Version: 1; reboot'");
});

test("of arguments that were cut no command is made", () => {
  expect(curlOfCall(callRow({ arguments: { cut: '{"a":', bytes: 99_999 } }), [], ADDRESS)).toBeNull();
});

// a curl that writes its arguments, each with an end of its own, and answers the first request of a session
const STUB = String.raw`curl() { printf '%s\037' "$@" >&2; printf '\036' >&2; printf 'mcp-session-id: S1\r\n'; }
`;

/** The shells of this machine, which has sh and rarely all of them. */
const SHELLS = ["sh", "bash", "zsh"].filter((shell) => spawnSync(shell, ["-c", "exit 0"]).status === 0);

test.each(SHELLS)("%s takes the commands as they are meant, word by word", (shell) => {
  const { stderr, status } = spawnSync(shell, ["-c", STUB + curlOfCall(callRow(), [], ADDRESS)], { encoding: "utf8" });
  expect(status).toBe(0);
  const [open, initialized, call] = stderr.split("\u001E").map((each) => each.split("\u001F"));
  const types = ["-H", "Content-Type:application/json", "-H", "Accept:application/json,text/event-stream"];
  expect(open?.slice(0, 6)).toEqual(["-si", ADDRESS, ...types]);
  expect(initialized?.slice(0, 7)).toEqual([ADDRESS, ...types, "-H", "Mcp-Session-Id: S1"]);
  expect(call?.slice(0, 8)).toEqual(["-N", ADDRESS, ...types, "-H", "Mcp-Session-Id: S1"]);
  expect(JSON.parse(call?.at(-2) ?? "")).toMatchObject({ method: "tools/call", params: { name: "progress" } });
});

test("a request can be sent again by curl: what the log hides is a variable, and quotes are safe", () => {
  const story = new Story();
  const { exchange } = story.request("s1", 1, "tools/call", { name: "echo", arguments: { text: "it's" } });
  const [first, message] = story.entries;
  if (first?.kind !== "http.request" || message === undefined) throw new Error("there is a request");
  const whole = { ...first, exchange, query: "tools=all", hidden: ["authorization"], headers: [["host", "x"], ["authorization", "[hidden]"], ["mcp-session-id", "8HqG…"], ["accept", "text/event-stream"]] as [string, string][] };
  expect(curlOfRequest(whole, [whole, message], "http://127.0.0.1:8000")).toBe(
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
