// A person with the official TypeScript SDK 2, who tries what a server offers: `node judged-2.mjs MODE URL`. MODE is the
// SDK's: `auto`, or `legacy`. Nothing is asserted here, as `mcp-probe judge` looks at the client.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [mode, url] = process.argv.slice(-2);
const CALLS = [
  ["simple_tool"], ["log_levels"], ["content_types"], ["structured_output"],
  ["fail", { how: "tool_error" }], ["fail", { how: "protocol_error" }],
  ["elicit_form", { fields: "basic" }], ["elicit_simple_form"], ["elicit_url"], ["list_roots"], ["list_roots"], ["ask_several"],
  ["ping_client"], ["ping_client"], ["sampling_demo"], ["announce_list_change", { list: "tools" }],
  ["long_output", { blocks: 20, chars: 65536 }], ["routed_tool", { region: "us-east", priority: 3, dry_run: true }],
  ["test_reconnection"], ["no_such_tool"],
];

// What a person fills into a form: the defaults, and what is known otherwise; a form that stays incomplete is dismissed.
function fill({ mode, requestedSchema }) {
  if (mode === "url") return { action: "decline" };
  const filled = { name: "Ada", age: 36 };
  const fields = Object.entries(requestedSchema.properties).map(([name, field]) => [name, field.default ?? filled[name]]);
  const content = Object.fromEntries(fields.filter(([, value]) => value !== undefined));
  const whole = (requestedSchema.required ?? []).every((name) => name in content);
  return whole ? { action: "accept", content } : { action: "cancel" };
}

const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
const client = new Client({ name: "typescript-sdk", version: "2" }, { capabilities, versionNegotiation: { mode } });
client.setRequestHandler("elicitation/create", async ({ params }) => fill(params));
client.setRequestHandler("roots/list", async () => ({ roots: [{ uri: "file:///tree", name: "tree" }] }));
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant", content: { type: "text", text: "old pond" }, model: "test", stopReason: "endTurn",
}));

const transport = new StreamableHTTPClientTransport(new URL(url));
transport.onerror = (error) => console.error(String(error));

// What comes of it; a refusal of the server, or what this era has not got, is told, as a person would see it.
async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    console.error(String(error));
  }
}

await client.connect(transport);
for (const name of ["listTools", "listResources", "listResourceTemplates", "listPrompts"]) await attempt(() => client[name]());
for (const [name, args = {}] of CALLS) {
  await attempt(() => client.callTool({ name, arguments: args }, { timeout: 10_000 }));
}
const progress = () => client.callTool({ name: "progress", arguments: {} }, { onprogress: () => {} });
await Promise.all([attempt(progress), attempt(progress)]);
const slow = { name: "silent_call", arguments: { silentMs: 3000, idleMs: 5000 } };
await attempt(() => client.callTool(slow, { timeout: 500 }));
await attempt(() => client.callTool(slow, { signal: AbortSignal.timeout(500) }));
for (const uri of ["probe://text", "probe://nothing", "probe://greeting"]) await attempt(() => client.readResource({ uri }));
await attempt(() => client.getPrompt({ name: "headlines", arguments: { year: "1999" } }));
await attempt(() => client.getPrompt({ name: "recipe" }));
const ref = { type: "ref/prompt", name: "headlines" };
for (const value of ["1", "19", "199"]) await attempt(() => client.complete({ ref, argument: { name: "year", value } }));
if (mode === "legacy") {
  await attempt(() => client.ping());
  await attempt(() => client.setLoggingLevel("warning"));
  await attempt(() => client.subscribeResource({ uri: "probe://clock" }));
  await attempt(() => client.unsubscribeResource({ uri: "probe://clock" }));
  await attempt(() => client.sendRootsListChanged());
  await attempt(() => client.listTools());
  await attempt(() => transport.terminateSession());
} else {
  const changed = new Promise((resolve) => client.setNotificationHandler("notifications/tools/list_changed", resolve));
  const heard = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["probe://clock"] });
  await client.callTool({ name: "announce_list_change", arguments: { list: "tools" } });
  await changed;
  await client.listTools();
  await heard.close();
}
await client.close();
