import type { SessionRow } from "~/protocol/schema";
import { clientName } from "~/words/client-name";
import { type Lane, type Span, overlaps } from "./lane";

/** A line of the picture: the name of a client, or one of its lanes. */
export type Line = { type: "client"; key: string; name: string; era: string | null; lanes: number } | { type: "lane"; key: string; lane: Lane };

/** The lanes that pass the filters. */
export function passing(lanes: readonly Lane[], kind: string, session: string): Lane[] {
  return lanes.filter((lane) => (kind === "" || lane.kind === kind) && (session === "" || lane.session === session));
}

/** Those of the lanes that lie in the span. */
export function within(lanes: readonly Lane[], span: Span, now: number): Lane[] {
  return lanes.filter((lane) => overlaps(lane, span, now));
}

const number = (label: string | null) => Number(/\d+$/.exec(label ?? "")?.[0] ?? -1);

/** Lanes under the names of their clients; the newest client first, each with its newest lanes first. */
export function linesOf(lanes: readonly Lane[], sessions: readonly SessionRow[]): Line[] {
  // runs apart: the same label means somebody else in another run
  const clients = Map.groupBy(lanes, (lane) => `${lane.key.slice(0, lane.key.indexOf("/"))}/${lane.session}`);
  const sorted = [...clients].toSorted(([, a], [, b]) => number(b[0]?.session ?? null) - number(a[0]?.session ?? null));
  return sorted.flatMap(([key, own]) => {
    const session = own[0]?.session ?? null;
    const era = sessions.find((each) => each.id === session)?.era ?? null;
    const head: Line = { type: "client", key, name: clientName(session, sessions), era, lanes: own.length };
    const below: Line[] = own.map((lane) => ({ type: "lane", key: lane.key, lane }));
    below.unshift(head);
    return below;
  });
}
