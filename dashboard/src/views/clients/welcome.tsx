import { useState } from "react";
import { Link } from "wouter";
import { useMcpAddress } from "~/protocol/use-server";
import { CodeBlock } from "~/ui/code-block";
import { ConnectClient } from "~/widgets/connect-client";
import { oneCommand } from "~/widgets/connect-snippets";
import { type Client, titleOf } from "./clients";
import styles from "./welcome.module.css";

/** What stands here until the first client comes: one command to try it, and how to connect a client. */
export function Welcome() {
  const address = useMcpAddress();
  return (
    <section className={styles["welcome"]} aria-label="Welcome">
      <p className={styles["listening"]}>
        <span className={styles["dot"]} aria-hidden="true" /> Waiting for the first request
      </p>
      <h2 className={styles["title"]}>See what your MCP client really does</h2>
      <p className={styles["lead"]}>
        Each client that connects appears here at its first request, with the rules of the specification that it breaks and the messages that show it.
      </p>
      {address !== null && (
        <div className={styles["part"]}>
          <h3>Try it now: paste this into a terminal</h3>
          <CodeBlock title="Shell" code={oneCommand(address)} wrap />
        </div>
      )}
      <div className={styles["part"]}>
        <h3>Connect your client</h3>
        <ConnectClient address={address} />
      </div>
    </section>
  );
}

/** The client that came first while the page was open, as long as it is the only one. */
export function useFirst(clients: readonly Client[], waiting: boolean): Client | null {
  const [sawNone, setSawNone] = useState(false);
  if (!waiting && clients.length === 0 && !sawNone) setSawNone(true);
  const [first, second] = clients;
  return sawNone && first !== undefined && second === undefined ? first : null;
}

/** Says that the first request has come: for a person who has just waited for it. */
export function FirstRequest({ client }: { client: Client }) {
  return (
    <p className={styles["first"]} role="status">
      <svg className={styles["sign"]} viewBox="0 0 48 48" aria-hidden="true">
        <circle className={styles["ring"]} cx="24" cy="24" r="20" />
        <circle className={styles["ground"]} cx="24" cy="24" r="20" />
        <path className={styles["check"]} d="M15 25 l6.5 6.5 L34 18" pathLength="1" />
      </svg>
      <span>
        <strong>It works: {titleOf(client).title} has sent its first request.</strong>
        <br />
        The verdicts below change as it goes on. <Link href="/trace">Trace</Link> has each message.
      </span>
    </p>
  );
}
