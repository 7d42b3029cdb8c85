import type { SessionRow } from "~/protocol/schema";

/** The row of the sessions for what no client is known for. */
export const UNATTRIBUTED = "unattributed";

/** The rows that are clients. */
export function clientsOf(rows: readonly SessionRow[]): readonly SessionRow[] {
  return rows.filter((row) => row.id !== UNATTRIBUTED);
}

/** `lab: agent 1.2`: the label that a client was given, where it has one, with its name and version; of one that says neither, that it does not. */
export function clientOf({ label, client_name, client_version }: Pick<SessionRow, "label" | "client_name" | "client_version">): string {
  const named = `${client_name} ${client_version}`.trim();
  return `${label === null ? "" : `${label}: `}${named === "" ? "no name given" : named}`;
}

/** `s7 desk-agent 1.0`: the label of a session with its client, as far as that is known. */
export function clientName(session: string | null, sessions: readonly SessionRow[]): string {
  if (session === null) return "unknown";
  const row = sessions.find((each) => each.id === session);
  return row === undefined ? session : `${session} ${clientOf(row)}`;
}

/** `from 203.0.113.1 through 10.0.0.1:4711`: a client's address, and that of the proxy that speaks for it. */
export function cameFrom({ client, peer }: { client: string; peer: string | null }): string {
  return `from ${client}${peer ? ` through ${peer}` : ""}`;
}
