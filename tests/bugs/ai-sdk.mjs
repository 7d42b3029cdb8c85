// A program with the MCP client of the AI SDK: `node ai-sdk.mjs PACKAGE ACT URL`, or a server's command line for the act
// `pings`. PACKAGE is a name of package.json.

const [name, act, ...rest] = process.argv.slice(2);
const { experimental_createMCPClient: create } = await import(name);
const call = (tool, args = {}) => tool.execute(args, { toolCallId: "1", messages: [] });
const seconds = (count) => new Promise((resolve) => setTimeout(resolve, 1000 * count));

const ACTS = {
  // two times all tools, and a call
  async pages() {
    const client = await create({ transport: { type: "http", url: rest[0] } });
    await client.tools();
    const tools = await client.tools();
    await call(tools.simple_tool);
    await client.close();
  },
  // a call whose answer comes on an event stream, where pings come, too; who reads none waits for ever
  async events() {
    const client = await create({ transport: { type: "http", url: rest[0] } });
    const tools = await client.tools();
    await Promise.race([call(tools.ping_client), seconds(14)]);
    await Promise.race([call(tools.ping_client), seconds(14)]);
    await Promise.race([client.close(), seconds(2)]);
  },
  // pings of a server that this program starts
  async pings() {
    const { Experimental_StdioMCPTransport: Pipe } = await import(`${name}/mcp-stdio`);
    const [command, ...args] = rest;
    const client = await create({ transport: new Pipe({ command, args, env: process.env }) });
    const tools = await client.tools();
    for (let count = 0; count < 2; count += 1) await call(tools.ping_client);
    await client.close();
    // the server ends by itself before this program does
    await seconds(2);
  },
};
await ACTS[act]();
process.exit(0);
