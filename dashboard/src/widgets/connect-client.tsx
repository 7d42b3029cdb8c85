import type { ReactNode } from "react";
import { useMcpAddress, useServer } from "~/protocol/client";
import { useFeed } from "~/trace/feed";
import { CopyButton } from "~/ui/buttons";
import { Segmented } from "~/ui/fields";
import { CodeBlock, EmptyState } from "~/ui/panel";
import { useUrlState } from "~/ui/window";
import { callMessage, legacyCurl, modernCurl, routing } from "~/words/curl";
import styles from "./connect-client.module.css";

interface NothingYetProps {
  title: string;
  /** What will appear here, and how to make it appear. */
  children: ReactNode;
}

/** What a view shows that has nothing to show: how to connect a client as long as none ever has, else what to do with it. */
export function NothingYet({ title, children }: NothingYetProps) {
  const address = useMcpAddress();
  const file = useServer().data?.file ?? null;
  const waiting = useFeed(({ hello }) => hello === null);
  const nobody = useFeed(({ tables }) => tables.sessions.length === 0);
  if (waiting) return <EmptyState title="Waiting for the server">Its data is not here yet.</EmptyState>;
  // nothing more will come
  if (file !== null) return <EmptyState title="The file has nothing of this" />;
  if (nobody) return <NothingConnected address={address}>{children}</NothingConnected>;
  return (
    <EmptyState title={title}>
      <p>{children}</p>
    </EmptyState>
  );
}

interface NothingConnectedProps {
  /** The MCP address of this server, null where it has none. */
  address: string | null;
  /** What the view will show once a client has connected. */
  children: ReactNode;
}

/** What every view shows while no client has connected since the server started. */
export function NothingConnected({ address, children }: NothingConnectedProps) {
  return (
    <EmptyState title="No client has connected since the server started">
      <p>{children}</p>
      <br />
      <ConnectClient address={address} />
    </EmptyState>
  );
}

interface ConnectClientProps {
  /** The MCP address of this server, null where it speaks on standard input and output, or shows a file. */
  address: string | null;
}

/** How to connect a client to this server. */
export function ConnectClient({ address }: ConnectClientProps) {
  return address === null ? <StandardStreams /> : <Snippets address={address} />;
}

function StandardStreams() {
  return (
    <p className="quiet">
      There is no address to connect to here: these pages show a file, or a server that speaks MCP on its standard input and output with
      the program that started it. Another client starts a server of its own: <code>mcp-probe stdio</code>.
    </p>
  );
}

/** What to copy, for each of the usual clients. */
function Snippets({ address }: { address: string }) {
  const snippets = connectSnippets(address);
  const [chosen, choose] = useUrlState("client", snippets[0].value);
  const shown = snippets.find((snippet) => snippet.value === chosen) ?? snippets[0];
  return (
    <div className={styles["connect"]}>
      <p className={`${styles["address"]} row`}>
        MCP address <code>{address}</code> <CopyButton text={address} label="Copy address" />
      </p>
      <Segmented label="Client" options={snippets} value={shown.value} onChange={choose} />
      <p className="quiet">{shown.hint}</p>
      <CodeBlock title={shown.title} code={shown.code} wrap />
    </div>
  );
}

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
