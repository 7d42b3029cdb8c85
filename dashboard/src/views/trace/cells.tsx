import { scalarText } from "~/protocol/json";
import type { Entry } from "~/protocol/schema";
import { directionOf, isAnswer, isMessage, peerOf } from "~/trace/evidence";
import { Badge } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { DirectionBadge, EraBadge } from "~/widgets/badges";
import { summaryOf } from "~/words/summary";
import { eraOf, useClient, useKnown, useMethod } from "./known";
import styles from "./live.module.css";

interface CellProps {
  run: string;
  entry: Entry;
}

/** Whose entry it is, with the label that the client was given and the name that it gives itself. */
export function Who({ run, entry }: CellProps) {
  const { session, label } = entry;
  const client = useClient(run, session);
  if (session === null && label === null) return <Host entry={entry} />;
  const title = client === null ? "client not known" : `${client.name} ${client.version}`;
  return (
    <span title={label === null ? title : `${label}: ${title}`}>
      {[session, label].filter((part) => part !== null).join(" ")} <span className={styles["quiet"]}>{client?.name}</span>
    </span>
  );
}

/** The label of a tool host, of an entry that is about no call. */
function Host({ entry }: { entry: Entry }) {
  if (!entry.kind.startsWith("host.")) return null;
  return (
    <>
      {entry.connection} <span className={styles["quiet"]}>{("host" in entry && entry.host) || "tool host"}</span>
    </>
  );
}

export function Era({ run, entry }: CellProps) {
  const { session } = entry;
  const revision = useClient(run, session)?.revision;
  if (session === null) return null;
  return (
    <>
      <EraBadge era={eraOf(session)} /> <span className={styles["quiet"]}>{revision}</span>
    </>
  );
}

/** The direction; of a message to the client also how far it got. */
export function Way({ run, entry }: CellProps) {
  const delivery = useKnown((known) => (entry.kind === "message.emitted" ? known.relations(run).deliveryOf(entry) : "not yet"));
  if (entry.kind === "message.dropped") {
    return (
      <Badge tone="bad" title="made, but not sent">
        ← dropped
      </Badge>
    );
  }
  if (entry.kind === "message.emitted") {
    if (delivery === "not yet") {
      return (
        <Badge tone="warn" title="made, and not yet taken by a socket">
          ← emitted
        </Badge>
      );
    }
    if (delivery === "unknown") return <Badge title="to the client; entries that may tell of its delivery are missing">← out ?</Badge>;
    return (
      <Badge tone="good" title={`to the client; taken by a socket, entry ${delivery.seq}`}>
        ← delivered
      </Badge>
    );
  }
  const direction = directionOf(entry);
  return direction === null ? null : <DirectionBadge direction={direction} peer={peerOf(entry)} />;
}

/** The method and what kind of message it is, or the kind of the entry. */
export function What({ run, entry }: CellProps) {
  const method = useMethod(run, entry);
  if (!isMessage(entry)) {
    return <span className={styles["kind"]}>{entry.kind}</span>;
  }
  return (
    <>
      {method !== null && <span className={styles["method"]}>{method} </span>}
      {(entry.rpc !== "notification" || method === null) && <span className={styles["quiet"]}>{entry.rpc}</span>}
    </>
  );
}

/** The id of the message, or of the request that a call runs for, with its JSON type. */
export function Id({ entry }: { entry: Entry }) {
  const id = "rpc" in entry ? entry.id : "request_id" in entry ? entry.request_id : null;
  if (id === null) return null;
  return (
    <code className={typeof id === "string" ? styles["string"] : styles["number"]} title={typeof id === "string" ? "string" : "number"}>
      {scalarText(id)}
    </code>
  );
}

export function Line({ run, entry }: CellProps) {
  const { mark, text } = summaryOf(entry, useMethod(run, entry));
  return (
    <span title={text}>
      {mark !== undefined && <Badge tone={mark.tone}>{mark.text}</Badge>} {text}
    </span>
  );
}

/** The other half of a request and its answer, with the time between them. */
export function Pair({ run, entry, onOpen }: CellProps & { onOpen: (run: string, seq: number) => void }) {
  const answer = useKnown((known) => known.relations(run).answerOf(entry.seq));
  const request = useKnown((known) => known.relations(run).requestOf(entry));
  const isMissing = useKnown((known) => known.relations(run).missing > entry.seq);
  if (!("rpc" in entry)) return null;
  if (entry.rpc === "request") {
    if (answer === undefined) return <span className={styles["quiet"]}>{isMissing ? "answer not known" : "no answer yet"}</span>;
    return <Jump text={`#${answer.seq} after ${between(entry, answer)}`} title="Show the answer" onClick={() => onOpen(run, answer.seq)} />;
  }
  if (request === undefined) return isAnswer(entry) ? <span className={styles["quiet"]}>request not known</span> : null;
  return <Jump text={`${between(request, entry)} after #${request.seq}`} title="Show the request" onClick={() => onOpen(run, request.seq)} />;
}

/** By the monotonic clock, which no correction of the time of day changes. */
export function between(first: Entry, second: Entry): string {
  return formatDuration(Math.max(0, (second.mono - first.mono) * 1000));
}

// Not in the tab order, which has one stop per row: the panel of the entry has the same as a link.
function Jump({ text, title, onClick }: { text: string; title: string; onClick: () => void }) {
  return (
    <button
      type="button"
      tabIndex={-1}
      className={styles["jump"]}
      title={title}
      onClick={(event) => {
        event.stopPropagation();
        onClick();
      }}
    >
      {text}
    </button>
  );
}
