import { ROOT } from "~/protocol/address";
import { useMcpAddress, useServer } from "~/protocol/use-server";
import { CodeBlock } from "~/ui/code-block";
import { TextField } from "~/ui/text-field";
import { useUrlState } from "~/ui/url-state";
import { withOwnProbe, withThisProbe } from "./commands";
import styles from "./gateway.module.css";

/** What stands here before a run is opened: how to make one. */
export function NoRun() {
  const [through, setThrough] = useUrlState("through", "http://127.0.0.1:8080/mcp");
  const address = useMcpAddress();
  const { port, command } = withOwnProbe(location.origin, through);
  return (
    <section className={styles["empty"]} aria-label="No run is open">
      <h2 className={styles["sentence"]}>Does your gateway change the protocol?</h2>
      <p className={styles["lead"]}>
        <code>mcp-probe gateway</code> makes the same requests with and without the gateway, and says what it changes, delays or loses. Drop the file that
        it writes on this page, or open it with the button above. The file stays in your browser.
      </p>
      <TextField label="MCP address through your gateway" value={through} onChange={setThrough} wide />
      <div className={styles["step"]}>
        <h3>Start the check, then point the gateway at http://127.0.0.1:{port}</h3>
        <CodeBlock title="Shell" code={command} wrap />
      </div>
      {address !== null && (
        <div className={styles["step"]}>
          <h3>Or, where the gateway leads to this server already</h3>
          <AllTools />
          <CodeBlock title="Shell" code={withThisProbe(`${location.origin}${ROOT}`, through)} wrap />
        </div>
      )}
    </section>
  );
}

/** The check calls tools of each set, so it needs a server that serves all. */
function AllTools() {
  const { data } = useServer();
  if (data === undefined || data.toolsets.every((set) => set.default)) return null;
  return (
    <p className={styles["quiet"]}>
      This needs a server with all tools, which this one is not: start it again with <code>mcp-probe serve --tools all</code>.
    </p>
  );
}
