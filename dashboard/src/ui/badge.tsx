import type { ReactNode } from "react";
import { type Tone, stateOf } from "~/words/states";
import styles from "./badge.module.css";

interface BadgeProps {
  children: ReactNode;
  tone?: Tone;
  /** A dot before the text, for what is a state and not a kind. */
  dot?: boolean;
  title?: string | undefined;
}

/** A short word with a colour. The word alone says everything; the colour only helps the eye. */
export function Badge({ children, tone = "neutral", dot = false, title }: BadgeProps) {
  const names = [styles["badge"], styles[tone], dot && styles["dot"]].filter(Boolean).join(" ");
  return (
    <span className={names} title={title}>
      {children}
    </span>
  );
}

/** An outcome, a task's status, a connection's state, a kind of message: whatever ui/states.ts knows. */
export function StatusBadge({ status, title }: { status: string; title?: string | undefined }) {
  const { label, tone } = stateOf(status);
  return (
    <Badge tone={tone} dot title={title}>
      {label}
    </Badge>
  );
}

/** Which era of the protocol; `revision` is shown where it is known. */
export function EraBadge({ era, revision }: { era: string; revision?: string | null | undefined }) {
  return <Badge title={revision ?? undefined}>{era}</Badge>;
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
