import { Badge } from "~/ui/badge";
import { stateOf } from "~/words/states";

/** An outcome, a task's status, a connection's state, a kind of message: whatever words/states.ts knows. */
export function StatusBadge({ status, title }: { status: string; title?: string | undefined }) {
  const { label, tone } = stateOf(status);
  return (
    <Badge tone={tone} dot title={title}>
      {label}
    </Badge>
  );
}

const PROTOCOLS: Readonly<Record<string, string>> = { legacy: "2025", modern: "2026" };

/** Which protocol: that of 2025, with sessions, or that of 2026, without; `revision` is shown where it is known. */
export function EraBadge({ era, revision }: { era: string; revision?: string | null | undefined }) {
  const year = PROTOCOLS[era] ?? era;
  return <Badge title={revision || `protocol ${year}`}>{year}</Badge>;
}

/** What carries a client's messages; `short` where there is little room. */
export function TransportBadge({ transport, short = false }: { transport: string; short?: boolean }) {
  return <Badge title={`over ${transport}`}>{short && transport === "websocket" ? "ws" : transport}</Badge>;
}

/** `in`: to this server from its `peer`; `out`: the other way. A peer that is no client is named. */
export function DirectionBadge({ direction, peer = "client" }: { direction: "in" | "out"; peer?: "client" | "tool host" }) {
  const who = peer === "client" ? "" : " · host";
  return direction === "in" ? (
    <Badge tone="info" title={`from the ${peer}`}>
      → in{who}
    </Badge>
  ) : (
    <Badge title={`to the ${peer}`}>
      ← out{who}
    </Badge>
  );
}
