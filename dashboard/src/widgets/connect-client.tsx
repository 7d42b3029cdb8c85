import { Segmented } from "~/ui/choice";
import { CodeBlock } from "~/ui/code-block";
import { CopyButton } from "~/ui/copy-button";
import { useUrlState } from "~/ui/url-state";
import styles from "./connect-client.module.css";
import { connectSnippets } from "./connect-snippets";

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
    <p className={styles["hint"]}>
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
      <p className={styles["address"]}>
        MCP address <code>{address}</code> <CopyButton text={address} label="Copy address" />
      </p>
      <Segmented label="Client" options={snippets} value={shown.value} onChange={choose} />
      <p className={styles["hint"]}>{shown.hint}</p>
      <CodeBlock title={shown.title} code={shown.code} wrap />
    </div>
  );
}
