// A program with the MCP client of the OpenAI Agents SDK: `node openai-agents.mjs PACKAGE URL`. PACKAGE is a name of package.json.

const [name, url] = process.argv.slice(2);
const { MCPServerStreamableHttp } = await import(name);
const server = new MCPServerStreamableHttp({ url, name: "probe" });
await server.connect();
// two times all tools, and a call
await server.listTools();
await server.listTools();
await server.callTool("simple_tool", {});
await server.close();
process.exit(0);
