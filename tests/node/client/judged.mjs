// A person with the official TypeScript SDK 1, who tries what a server offers: `node judged.mjs URL`. Nothing is asserted
// here, as `mcp-probe judge` looks at the client.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const CALLS = [
  ["simple_tool"], ["log_levels"], ["content_types"], ["structured_output"],
  ["fail", { how: "tool_error" }], ["fail", { how: "protocol_error" }],
  ["elicit_simple_form"], ["list_roots"], ["list_roots"], ["ping_client"], ["ping_client"], ["sampling_demo"],
  ["announce_list_change", { list: "tools" }], ["long_output", { blocks: 20, chars: 65536 }], ["test_reconnection"],
];

const client = new Client({ name: "typescript-sdk", version: "1" }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
client.setRequestHandler(types.ElicitRequestSchema, async () => ({ action: "decline" }));
client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///tree", name: "tree" }] }));
client.setRequestHandler(types.CreateMessageRequestSchema, async () => ({
  role: "assistant", content: { type: "text", text: "old pond" }, model: "test", stopReason: "endTurn",
}));

const transport = new StreamableHTTPClientTransport(new URL(process.argv.at(-1)));
transport.onerror = (error) => console.error(String(error));

// What comes of it; a refusal of the server is told, as a person would see it.
async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    console.error(String(error));
  }
}

async function pages(list) {
  let page = await list({});
  while (page.nextCursor !== undefined) page = await list({ cursor: page.nextCursor });
}

await client.connect(transport);
for (const name of ["listTools", "listResources", "listResourceTemplates", "listPrompts"]) {
  await attempt(() => pages((params) => client[name](params)));
}
for (const [name, args = {}] of CALLS) {
  await attempt(() => client.callTool({ name, arguments: args }, undefined, { timeout: 10_000 }));
}
const progress = () => client.callTool({ name: "progress", arguments: {} }, undefined, { onprogress: () => {} });
await Promise.all([attempt(progress), attempt(progress)]);
const slow = { name: "silent_call", arguments: { silentMs: 3000, idleMs: 5000 } };
await attempt(() => client.callTool(slow, undefined, { timeout: 500 }));
await attempt(() => client.callTool(slow, undefined, { signal: AbortSignal.timeout(500) }));
await attempt(() => client.readResource({ uri: "probe://text" }));
await attempt(() => client.getPrompt({ name: "headlines", arguments: { year: "1999" } }));
await attempt(() => client.ping());
await attempt(() => client.setLoggingLevel("warning"));
await attempt(() => client.listTools());
await attempt(() => transport.terminateSession());
await client.close();
