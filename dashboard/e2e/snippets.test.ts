import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withOwnProbe, withThisProbe } from "~/views/gateway/gateway-view";
import { connectSnippets } from "~/widgets/connect-client";
import { startLateProxy } from "./late-proxy.ts";
import { freePort } from "./server.ts";
import { visiting } from "./visiting.ts";

// What the pages give to be copied, run as it stands in the shells of Linux and of macOS.

const SHELLS = ["bash", "zsh"] as const;
const PROGRAMS = dirname(process.env["PROBE_PYTHON"] ?? "python");
const NODE = process.execPath;
const MODULES = join(import.meta.dirname, "../../tests/node/node_modules");

const probe = visiting("--rooms", "on");
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mcp-probe-"));
  await symlink(MODULES, join(folder, "node_modules"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs a command where `python`, `node` and `mcp-probe` are those of the tests; its output, and its status behind that. */
async function run(shell: string, command: string): Promise<string> {
  const PATH = [join(folder, "bin"), PROGRAMS, dirname(NODE), process.env["PATH"]].join(delimiter);
  const child = spawn(shell, ["-c", command], { cwd: folder, env: { ...process.env, PATH }, stdio: ["ignore", "pipe", "pipe"] });
  const pieces: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => pieces.push(String(piece)));
  const status = await new Promise((resolve) => child.once("close", resolve));
  return `${pieces.join("")}\nstatus ${String(status)}`;
}

/** The snippets that some test here has looked at. */
const tried = new Set<string>();

function snippet(value: string): { title: string; code: string } {
  tried.add(value);
  const found = connectSnippets(`${probe.server.url}/mcp`).find((each) => each.value === value);
  if (found === undefined) throw new Error(`there is no snippet ${value}`);
  return found;
}

/** How many tool calls the server has had that came to their end. */
async function completed(): Promise<number> {
  const { calls } = (await (await fetch(`${probe.server.url}/api/calls?outcome=completed`)).json()) as { calls: unknown[] };
  return calls.length;
}

test.each(SHELLS)("the commands with curl call a tool, in %s", async (shell) => {
  const before = await completed();
  for (const value of ["curl", "curl-legacy"]) expect(await run(shell, snippet(value).code)).toMatch(/"structuredContent":\{"steps":[^]*status 0$/);
  expect(await completed()).toBe(before + 2);
});

test.each([
  ["python", "python my_client.py"],
  ["typescript", "node my_client.mjs"],
])("the client in %s calls a tool of this server, and of another one that it is given", async (value, command) => {
  const { title, code } = snippet(value);
  await writeFile(join(folder, title), code);
  const before = await completed();
  expect(await run("sh", command)).toMatch(/step 3\/3 \(3 of 3\)[^]*status 0$/);
  expect(await completed()).toBe(before + 1);
  expect(await run("sh", `${command} ${probe.server.url}/mcp?client=${value}`)).toMatch(/status 0$/);
  expect((await (await fetch(`${probe.server.url}/api/calls?label=${value}`)).json()) as object).toMatchObject({ calls: [{ tool: "progress" }] });
});

test("the client in TypeScript of the README calls a tool", async () => {
  const readme = await readFile(join(import.meta.dirname, "../../README.md"), "utf8");
  const code = /```js\n([^]*?)```/.exec(readme)?.[1];
  expect(code).toMatch(/^\/\/ my_client\.mjs\n/);
  await writeFile(join(folder, "my_client.mjs"), code ?? "");
  expect(await run("sh", `node my_client.mjs ${probe.server.url}/mcp`)).toMatch(/step 3\/3 \(3 of 3\)[^]*status 0$/);
});

// what the command line appended by --stdio is given to, in the help of the judge
const STDIO_CLIENT = `
(async () => {
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client({ name: "my-client", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3) }));
  console.log(await client.callTool({ name: "progress", arguments: { steps: 3 } }));
  await client.close();
})();
`;

// five runs of the judge: three have a server of their own, one has a room of this server
test("the commands in the help of the judge give a verdict", { timeout: 240_000 }, async () => {
  await writeFile(join(folder, "my_client.py"), snippet("python").code);
  await writeFile(join(folder, "my_client.js"), STDIO_CLIENT);
  expect(await run("zsh", "mcp-probe judge --save events.ndjson -- python my_client.py")).toMatch(/status 0$/);
  const help = await run("zsh", "mcp-probe judge --help");
  const commands = [...help.matchAll(/^ {2}(mcp-probe judge .*)$/gm)].map(([, command]) => command ?? "");
  expect(commands).toHaveLength(4);
  for (const command of commands) expect(await run("zsh", command.replace("https://probe.example", probe.server.url))).toMatch(/rules exercised[^]*status 0$/);
});

test("the judge runs the client that stands beside it", async () => {
  await writeFile(join(folder, "my_client.py"), snippet("python").code);
  expect(await run("zsh", snippet("judge").code)).toMatch(/rules exercised[^]*status 0$/);
});

test("the commands of the gateway check find the gateway, with a probe of their own and with this server", async () => {
  const gateway = await startLateProxy(probe.server.url, 1);
  const only = "--only errors.tool --wait 20";
  expect(await run("sh", `${withThisProbe(probe.server.url, `${gateway.url}/mcp`)} ${only}`)).toMatch(/status 0$/);
  gateway.stop();
  const { port, command } = withOwnProbe(`http://127.0.0.1:${(await freePort()) - 1}`, "http://127.0.0.1:9/mcp");
  const before = await startLateProxy(`http://127.0.0.1:${port}`, 1);
  expect(await run("sh", `${command.replace("http://127.0.0.1:9", before.url)} ${only}`)).toMatch(/status 0$/);
  before.stop();
});

test.each(SHELLS)("the commands for Claude Code and for the Inspector are words of the shell, with this server's address, in %s", async (shell) => {
  const url = `${probe.server.url}/mcp`;
  await mkdir(join(folder, "bin"));
  // in place of the programs: each prints what it was called with
  for (const program of ["claude", "npx"]) await writeFile(join(folder, "bin", program), `#!/bin/sh\nprintf '<%s>' ${program} "$@"\necho\n`, { mode: 0o755 });
  expect(await run(shell, snippet("claude").code)).toBe(`<claude><mcp><add><--transport><http><probe><${url}>\n\nstatus 0`);
  const asked = `<npx><@modelcontextprotocol/inspector><--cli><${url}><--transport><http><--method>`;
  expect(await run(shell, snippet("inspector").code)).toBe(`${asked}<tools/list>\n${asked}<tools/call><--tool-name><simple_tool><--tool-arg><delayMs=250>\n\nstatus 0`);
});

test("the settings of an editor are JSON with this server's address", () => {
  expect(JSON.parse(snippet("vscode").code)).toEqual({ servers: { probe: { type: "http", url: `${probe.server.url}/mcp` } } });
});

test("no snippet of the pages is left out of these tests", () => {
  expect([...tried].toSorted()).toEqual(connectSnippets("").map(({ value }) => value).toSorted());
});
