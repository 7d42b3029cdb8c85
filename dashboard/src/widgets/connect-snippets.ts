import { callMessage, legacyCurl, modernCurl, routing } from "~/words/curl";

interface Snippet {
  /** What goes into the URL of the page. */
  value: string;
  label: string;
  /** Where the code belongs, or what it is. */
  title: string;
  /** One sentence: what to do with it. */
  hint: string;
  code: string;
}

/** A call of 2026-07-28 as one command, which needs nothing but curl. */
export const oneCommand = (url: string) =>
  modernCurl(url, routing("progress"), callMessage({ tool: "progress", arguments: { steps: 10, step_ms: 300 }, token: "t" }, true), 0);

const legacy = (url: string) =>
  legacyCurl(url, [], callMessage({ tool: "progress", arguments: { steps: 5, step_ms: 500 }, token: "t" }, false), "2025-11-25", { name: "curl", version: "0" });

// both take another address as their argument, as `mcp-probe judge` gives one
const python = (url: string) => `import asyncio
import sys

from mcp import Client

url = sys.argv[1] if len(sys.argv) > 1 else ${JSON.stringify(url)}


async def main() -> None:
    async def shown(progress: float, total: float | None, message: str | None) -> None:
        print(f"{message} ({progress:g} of {total:g})")

    async with Client(url) as client:
        print(await client.call_tool("progress", {"steps": 3}, progress_callback=shown))


asyncio.run(main())
`;

const typescript = (url: string) => `import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const url = process.argv[2] ?? ${JSON.stringify(url)};
const client = new Client({ name: "my-client", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const onprogress = ({ message, progress, total }) => console.log(\`\${message} (\${progress} of \${total})\`);
console.log(await client.callTool({ name: "progress", arguments: { steps: 3 } }, { onprogress }));
await client.close();
`;

const inspector = (url: string) => `npx @modelcontextprotocol/inspector --cli ${url} --transport http --method tools/list
npx @modelcontextprotocol/inspector --cli ${url} --transport http \\
  --method tools/call --tool-name simple_tool --tool-arg delayMs=250`;

/** How to point each kind of client at the MCP address `url`; the first one is shown first. */
export function connectSnippets(url: string): readonly [Snippet, ...Snippet[]] {
  return [
    { value: "python", label: "Python", title: "my_client.py", hint: "pip install mcp, then python my_client.py.", code: python(url) },
    { value: "typescript", label: "TypeScript", title: "my_client.mjs", hint: "npm install @modelcontextprotocol/client, then node my_client.mjs.", code: typescript(url) },
    {
      value: "curl",
      label: "curl",
      title: "Shell",
      hint: "2026-07-28 has no handshake: each request says everything. Press Ctrl-C while it runs to see a cancellation.",
      code: oneCommand(url),
    },
    { value: "curl-legacy", label: "curl, 2025-11-25", title: "Shell", hint: "Opens a session first, then calls a tool in it.", code: legacy(url) },
    {
      value: "judge",
      label: "mcp-probe judge",
      title: "Shell",
      hint: "For scripts and CI: starts a server of its own, runs your client with that server's address as its last argument, and prints the verdict.",
      code: "mcp-probe judge -- python my_client.py",
    },
    {
      value: "vscode",
      label: "VS Code",
      title: ".vscode/mcp.json",
      hint: "Save this in the folder that is open, then start the server “probe” from the file or the command palette.",
      code: JSON.stringify({ servers: { probe: { type: "http", url } } }, null, 2),
    },
    {
      value: "claude",
      label: "Claude Code",
      title: "Shell",
      hint: "Adds the server; /mcp inside Claude Code shows it.",
      code: `claude mcp add --transport http probe ${url}`,
    },
    {
      value: "inspector",
      label: "Inspector",
      title: "Shell",
      hint: "The command line of the official Inspector, which needs Node.",
      code: inspector(url),
    },
  ];
}
