import type { CSSProperties, ReactNode } from "react";
import { isRounded, type JsonNumber, type Scalar, scalarText } from "~/protocol/json";
import { Badge } from "~/ui/badge";
import { Fact, Facts } from "~/ui/panel";
import { stateOf } from "~/words/states";
import { shareText } from "~/words/text";
import styles from "./badges.module.css";

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

/** The label of a client behind a mark in its colour. */
export function ClientMark({ label }: { label: string }) {
  const { colour, ring } = clientColour(label);
  return (
    <span className={`${styles["mark"]} ${ring ? styles["ring"] : ""}`} style={{ "--of": colour } as CSSProperties}>
      {label}
    </span>
  );
}

/** How a client is marked wherever it appears, beside its label. */
interface ClientColour {
  /** A CSS colour, for text, lines and marks in both themes. */
  colour: string;
  /** Whether its mark is a ring and not a dot: two clients of one colour may be told apart by it. */
  ring: boolean;
}

// as many as stay apart for people who see only two of three primary colours; see --client-1 in tokens.css
const COLOURS = 6;

/**
 * The colour of a client by its label (`s1`, `m3`), the same on each page and after a reload.
 *
 * Sessions take the colours from the first on, as dots, and modern clients from the last on, as rings, so that the
 * first few of both are different. The label always stands beside the colour, which says nothing alone.
 */
export function clientColour(label: string): ClientColour {
  const number = Number(/\d+$/.exec(label)?.[0] ?? 1) - 1;
  const place = label.startsWith("m") ? 2 * COLOURS - 1 - (number % (2 * COLOURS)) : number % (2 * COLOURS);
  return { colour: `var(--client-${(place % COLOURS) + 1})`, ring: place >= COLOURS };
}

const MEANING: Readonly<Record<string, string>> = {
  connecting: "Connecting to the server",
  live: "Everything arrives as it happens",
  stale: "The connection to the server is lost, so this page may be out of date. Trying again",
  closed: "The server refused the connection. Trying again",
};

/** Whether what is on the page is what is so; changes are announced. Of a saved file, which does not change, its name is the title. */
export function ConnectionPill({ status, saved }: { status: string; saved: string | null | undefined }) {
  const shown = status !== "live" || saved === null ? status : saved === undefined ? "connecting" : "saved_file";
  return (
    <span role="status" aria-label="Connection">
      <StatusBadge status={shown} title={MEANING[shown] ?? (saved || undefined)} />
    </span>
  );
}

/** A JSON value of one word with its type, so that 5 and "5" can be told apart, and "" from nothing. */
export function TypedValue({ value }: { value: Scalar }) {
  return (
    <span className={styles["typed"]}>
      <code>{scalarText(value)}</code> {value !== null && <span className="aside">{typeOf(value)}</span>}
    </span>
  );
}

function typeOf(value: string | number | bigint | boolean): string {
  if (typeof value === "bigint") return "integer";
  if (typeof value !== "number") return typeof value;
  if (!Number.isInteger(value)) return "number";
  return isRounded(value) ? "integer, about: it has more digits than this browser reads" : "integer";
}

interface ProgressBarProps {
  /** Names it for a screen reader, such as "progress of task 7". */
  label: string;
  done: JsonNumber | null;
  /** Without a total there is no share to show: the bar moves while the status is one that runs. */
  total: JsonNumber | null;
  /** Colours the bar, as words/states.ts has it. */
  status?: string;
}

const RUNNING = new Set(["running", "working", "queued", "input_required"]);

/** How far something got, as a bar and in words. */
export function ProgressBar({ label, done, total, status = "running" }: ProgressBarProps) {
  const share = done !== null && total !== null && total > 0 ? Math.min(1, Math.max(0, Number(done) / Number(total))) : null;
  const moving = share === null && RUNNING.has(status);
  const text = done === null ? "" : shareText(done, total);
  return (
    <span className={styles["bar"]}>
      <span
        className={`${styles["share"]} track`}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={share === null ? undefined : Math.round(share * 100)}
        aria-valuetext={text === "" ? undefined : text}
      >
        {(share !== null || moving) && (
          <span
            className={`${styles["fill"]} ${moving ? styles["moving"] : ""}`}
            data-tone={stateOf(status).tone}
            style={share === null ? undefined : { width: `${share * 100}%` }}
          />
        )}
      </span>
      <span className={styles["text"]}>{text}</span>
    </span>
  );
}

interface CancellationProps {
  /** The cause, in words after "cancelled". */
  how: string;
  reason: string | null;
  /** From the moment of cancellation until all of the work had stopped, in milliseconds; null is unknown. */
  latency: number | null;
  /** How many messages were sent after it; null where the entry that says so is gone. */
  after: number | null;
  /** More of it: `Fact`s. */
  children?: ReactNode;
}

/** Who stopped the work, how long that took, and whether anything was still said. */
export function Cancellation({ how, reason, latency, after, children }: CancellationProps) {
  return (
    <Facts>
      <Fact name="Cancelled">
        <strong className={styles["by"]}>{how}</strong>
      </Fact>
      <Fact name="Reason">{reason ?? "none given"}</Fact>
      <Fact name="Latency">{latency === null ? "unknown" : `${latency} ms until the work had stopped`}</Fact>
      <Fact name="Messages after">{after ?? "unknown: the entry that says it is gone"}</Fact>
      {children}
    </Facts>
  );
}
