import type { JsonNumber } from "~/protocol/json";
import type { SessionRow } from "~/protocol/schema";

/** `2 messages`, `1 message`, `1,200 entries`. `many` where that is not the word with an s. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}

/** How far something got: `4/20`, or `4` where there is no total; `?` for what is not known. */
export function shareText(done: JsonNumber | null, total: JsonNumber | null): string {
  return total === null ? `${done ?? "?"}` : `${done ?? "?"}/${total}`;
}

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

/** A sentence with a large first letter. */
export const begun = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
