import type { ReactNode } from "react";
import { useMcpAddress, useServer } from "~/protocol/use-server";
import { useFeed } from "~/trace/use-feed";
import { EmptyState } from "~/ui/empty-state";
import { NothingConnected } from "./nothing-connected";

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
