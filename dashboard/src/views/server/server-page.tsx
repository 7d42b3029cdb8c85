import type { ReactNode } from "react";
import type { Server } from "~/protocol/schema";
import { useServer } from "~/protocol/use-server";
import { Badge } from "~/ui/badge";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Skeleton } from "~/ui/skeleton";
import { SERVER_TABS } from "~/widgets/server-tabs";

const EVERY_MS = 2_000;

interface ServerPageProps {
  part: string;
  children: (server: Server) => ReactNode;
}

/** A part of the view of the server, which is asked again every two seconds. */
export function ServerPage({ part, children }: ServerPageProps) {
  const { data, error, dataUpdatedAt } = useServer(EVERY_MS);
  const old = error !== null && data !== undefined;
  return (
    <Page
      title="Server"
      part={part}
      tabs={SERVER_TABS}
      scroll
      tools={old && <Badge tone="warn">disconnected; this is as of {new Date(dataUpdatedAt).toLocaleTimeString()}</Badge>}
    >
      {data !== undefined && children(data)}
      {data === undefined && error === null && <Skeleton label="Loading" />}
      {data === undefined && error !== null && (
        <EmptyState title="The server does not answer">
          <p>{error.message}. Trying again every 2 seconds.</p>
        </EmptyState>
      )}
    </Page>
  );
}
