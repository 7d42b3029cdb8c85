import type { Entry } from "~/protocol/schema";

/** What belongs together, for links such as `call:c7`: ids of the server. */
export const TOPICS = ["client", "call", "task", "exchange", "stream", "connection"] as const;
export type Topic = (typeof TOPICS)[number];

/** What an entry belongs to, as a filter line names it; null for nothing. The id of a stream is unique within its session only. */
export function topicOf(entry: Entry, topic: Topic): string | null {
  if (topic === "client") return entry.label;
  const mine = entry[topic];
  if (mine === null) return null;
  return topic === "stream" ? `${entry.session}/${mine}` : String(mine);
}
