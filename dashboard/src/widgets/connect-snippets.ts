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

const modern = (url: string) => modernCurl(url, routing("progress"), callMessage({ tool: "progress", arguments: { steps: 20, step_ms: 500 }, token: "t" }, true));

const legacy = (url: string) =>
  legacyCurl(url, [], callMessage({ tool: "progress", arguments: { steps: 5, step_ms: 500 }, token: "t" }, false), "2025-11-25", { name: "curl", version: "0" });

const inspector = (url: string) => `npx @modelcontextprotocol/inspector --cli ${url} --transport http --method tools/list
npx @modelcontextprotocol/inspector --cli ${url} --transport http \\
  --method tools/call --tool-name simple_tool --tool-arg delayMs=250`;

/** How to point each kind of client at the MCP address `url`; the first one is shown first. */
export function connectSnippets(url: string): readonly [Snippet, ...Snippet[]] {
  return [
    {
      value: "curl",
      label: "curl 2026-07-28",
      title: "Shell",
      hint: "No handshake: each request says everything. Press Ctrl-C while it runs to see a cancellation.",
      code: modern(url),
    },
    {
      value: "curl-legacy",
      label: "curl 2025-11-25",
      title: "Shell",
      hint: "Opens a session first, then calls a tool in it.",
      code: legacy(url),
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
