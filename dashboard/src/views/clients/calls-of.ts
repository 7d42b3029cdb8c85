import type { SessionRow } from "~/protocol/schema";

/** How many tool calls a client has begun. */
export function callsOf(row: SessionRow): number {
  return Object.values(row.tools).reduce((all, count) => all + count, 0);
}
