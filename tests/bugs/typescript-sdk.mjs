// A program with the official TypeScript SDK: `node typescript-sdk.mjs PACKAGE ACT URL`, or a server's command line for the
// act `pipe`. PACKAGE is a name of package.json.

const [name, act, ...rest] = process.argv.slice(2);
const load = (path) => import(name.startsWith("mcp-client") ? name : `${name}/${path}`);
const { Client } = await load("client/index.js");
const seconds = (count) => new Promise((resolve) => setTimeout(resolve, 1000 * count));

async function connected(transport, capabilities = {}, prepare = () => {}) {
  const client = new Client({ name: "typescript-sdk", version: name }, { capabilities });
  prepare(client);
  await client.connect(transport);
  return client;
}

async function overHttp(capabilities, prepare) {
  const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
  const transport = new StreamableHTTPClientTransport(new URL(rest[0]));
  return [await connected(transport, capabilities, prepare), transport];
}

const ACTS = {
  // asks for every list, whatever the server declares
  async lists() {
    const [client, transport] = await overHttp();
    await client.listTools();
    for (const list of ["listPrompts", "listResources", "listResourceTemplates"]) {
      await client[list]().catch((error) => console.error(String(error)));
    }
    await client.callTool({ name: "progress", arguments: { steps: 2, step_ms: 10 } });
    await transport.terminateSession();
    await client.close();
  },
  // declines a form with the word that the SDK allows
  async decline() {
    const types = await load("types.js");
    const action = ["decline", "reject"].find((word) => types.ElicitResultSchema.safeParse({ action: word }).success);
    const [client, transport] = await overHttp({ elicitation: {} }, (made) =>
      made.setRequestHandler(types.ElicitRequestSchema, async () => ({ action })),
    );
    await client.listTools();
    await client.callTool({ name: "elicit_simple_form", arguments: {} }).catch((error) => console.error(String(error)));
    await client.callTool({ name: "simple_tool", arguments: {} });
    await transport.terminateSession();
    await client.close();
  },
  // calls whose answers come on event streams, and stays for a while
  async streams() {
    const [client, transport] = await overHttp();
    await client.listTools();
    const onprogress = () => {};
    for (let call = 0; call < 3; call += 1) {
      await client.callTool({ name: "progress", arguments: { steps: 2, step_ms: 10 } }, undefined, { onprogress });
    }
    await seconds(2.5);
    await client.callTool({ name: "simple_tool", arguments: {} });
    await transport.terminateSession();
    await client.close();
  },
  // starts a server, or a bridge to one, and ends it
  async pipe() {
    const { StdioClientTransport } = await load("client/stdio.js");
    const [command, ...args] = rest;
    const client = await connected(new StdioClientTransport({ command, args, env: process.env }));
    await client.listTools();
    await client.callTool({ name: "simple_tool", arguments: {} });
    await client.close();
    // the end of this program closes the input, too: that comes well after the signal of a client that sends one
    await seconds(2);
  },
};
await ACTS[act]();
process.exit(0);
