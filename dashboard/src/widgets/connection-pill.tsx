import { StatusBadge } from "./badges";

const MEANING: Readonly<Record<string, string>> = {
  connecting: "The first connection to the server is being made",
  live: "Events arrive as they happen",
  stale: "The connection was lost; what you see may be old. Trying again",
  closed: "The server took no connection. Trying again",
};

/** Whether what is on the page is what is so; changes are announced. */
export function ConnectionPill({ status }: { status: string }) {
  return (
    <span role="status" aria-label="Connection">
      <StatusBadge status={status} title={MEANING[status]} />
    </span>
  );
}
