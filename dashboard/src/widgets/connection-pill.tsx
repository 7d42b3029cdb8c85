import { StatusBadge } from "./badges";

const MEANING: Readonly<Record<string, string>> = {
  connecting: "Connecting to the server",
  live: "Everything arrives as it happens",
  stale: "The connection to the server is lost, so this page may be out of date. Trying again",
  closed: "The server refused the connection. Trying again",
};

/** Whether what is on the page is what is so; changes are announced. */
export function ConnectionPill({ status }: { status: string }) {
  return (
    <span role="status" aria-label="Connection">
      <StatusBadge status={status} title={MEANING[status]} />
    </span>
  );
}
