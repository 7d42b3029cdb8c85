import { CodeBlock } from "~/ui/code-block";
import { EmptyState } from "~/ui/empty-state";

const LISTEN = "mcp-probe gateway --listen 8000 --through http://127.0.0.1:8080/mcp --format json --out run.json";
const PROBE = "mcp-probe gateway --probe http://127.0.0.1:8000 --through http://127.0.0.1:8080/mcp --format json --out run.json";

/** What stands here before a run is opened: how to make one. */
export function Empty() {
  return (
    <EmptyState title="No run of the gateway check is open">
      <p>
        <code>mcp-probe gateway</code> makes the same exchanges with and without a gateway and says what the gateway changes, delays or
        loses. Drop its file here, or open it with the button above. The file stays in your browser.
      </p>
      <br />
      <CodeBlock title="The check starts a probe; point the gateway at port 8000" code={LISTEN} wrap />
      <br />
      <CodeBlock title="A probe runs behind the gateway already; the evidence leads into its log" code={PROBE} wrap />
    </EmptyState>
  );
}
