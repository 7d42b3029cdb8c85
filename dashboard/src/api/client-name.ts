import type { SessionRow } from "./schema";

/** The row of the sessions for what no client is known for. */
export const UNATTRIBUTED = "unattributed";

/** The rows that are clients. */
export function clientsOf(rows: readonly SessionRow[]): readonly SessionRow[] {
  return rows.filter((row) => row.id !== UNATTRIBUTED);
}

/** `s7 desk-agent 1.0`: a label with the name and version of its client, as far as they are known. */
export function clientName(label: string | null, sessions: readonly SessionRow[]): string {
  if (label === null) return "unknown";
  const row = sessions.find((each) => each.id === label);
  return row === undefined ? label : `${label} ${row.client_name} ${row.client_version}`;
}

/** `from 203.0.113.1 through 10.0.0.1:4711`: a client's address, and that of the proxy that speaks for it. */
export function cameFrom({ client, peer }: { client: string; peer: string | null }): string {
  return `from ${client}${peer ? ` through ${peer}` : ""}`;
}
