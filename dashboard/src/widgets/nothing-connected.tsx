import type { ReactNode } from "react";
import { EmptyState } from "~/ui/empty-state";
import { ConnectClient } from "./connect-client";

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
