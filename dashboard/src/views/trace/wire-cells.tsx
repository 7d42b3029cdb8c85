import type { Entry } from "~/protocol/schema";
import { directionOf, isMessage, pipeOf } from "~/trace/evidence";
import { keyOf } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { Badge } from "~/ui/badge";
import { Duration, Time } from "~/ui/time";
import { formatDuration, formatOffset } from "~/ui/time-format";
import { ClientMark } from "~/widgets/client-mark";
import { FindingMarks } from "~/widgets/finding-mark";
import { summaryOf } from "~/words/summary";
import { Id, Way, What, between } from "./cells";
import { askedBy, endingOf } from "./exchange-text";
import { type Exchange, factsOf } from "./exchanges";
import { useClient, useMethod } from "./known";
import styles from "./live.module.css";
import type { Repeat } from "./repeats";
import { type LiveRow, type WireRow, entryOf, isOpen } from "./wire-rows";

/** Opens and closes a row that has others below it. */
export function Fold({ row, open, onToggle }: { row: LiveRow; open: ReadonlySet<string>; onToggle: (row: LiveRow) => void }) {
  const is = isOpen(row, open);
  if (is === undefined) return null;
  return (
    // the arrow keys do the same, and a row has one stop for the keyboard
    <button
      type="button"
      tabIndex={-1}
      className={styles["fold"]}
      aria-label={is ? "Fold" : "Unfold"}
      onClick={(event) => {
        event.stopPropagation();
        onToggle(row);
      }}
    >
      {is ? "▾" : "▸"}
    </button>
  );
}

/** The time of day of an exchange; of a message below one, how long after the beginning of that. */
export function When({ row }: { row: WireRow }) {
  const [first] = row.exchange.entries;
  if (first === undefined) return null;
  if (row.type === "exchange") return <Time at={first.at} />;
  const entry = row.type === "message" ? row.entry : row.entries[0];
  return entry === undefined ? null : <span className={styles["quiet"]}>{formatOffset((entry.mono - first.mono) * 1000)}</span>;
}

/** The client of an exchange, or the tool host; of a message below it, which way it went. */
export function ClientOrWay({ row }: { row: WireRow }) {
  if (row.type === "exchange") return <ClientOf exchange={row.exchange} />;
  return row.type === "message" ? <Way run={row.exchange.run} entry={row.entry} /> : null;
}

function ClientOf({ exchange }: { exchange: Exchange }) {
  const { session, label, head } = factsOf(exchange);
  const client = useClient(exchange.run, session);
  if (session === null && label === null) {
    return head.kind.startsWith("host.") ? <span className={styles["quiet"]}>tool host {head.connection}</span> : <span className={styles["quiet"]}>–</span>;
  }
  const name = client?.name === "" ? "without a name" : client?.name;
  return (
    <span title={client === null ? "client not known" : `${client.name} ${client.version}, ${client.revision}`}>
      {session !== null && <ClientMark label={session} />} {label !== null && `${label} `}
      <span className={styles["quiet"]}>{name}</span>
    </span>
  );
}

/** What was asked, and of a message below an exchange what it says. */
export function Said({ row }: { row: WireRow }) {
  const from = factsOf(row.exchange).head;
  const asked = askedBy(row.exchange, useMethod(row.exchange.run, from));
  if (row.type === "progress") return <Progress entries={row.entries} />;
  if (row.type === "message") return <Message run={row.exchange.run} entry={row.entry} level={row.level} />;
  const { method, rpc, text } = asked;
  return (
    <span title={text}>
      {directionOf(from) === "out" && <span className={styles["quiet"]}>← </span>}
      <span className={styles["method"]}>{method}</span> {rpc !== null && <span className={styles["quiet"]}>{rpc} </span>}
      {text}
    </span>
  );
}

function Message({ run, entry, level }: { run: string; entry: Entry; level: number }) {
  const { mark, text } = summaryOf(entry, useMethod(run, entry));
  return (
    <span className={level === 3 ? styles["third"] : styles["second"]} title={text}>
      <What run={run} entry={entry} /> {mark !== undefined && <Badge tone={mark.tone}>{mark.text}</Badge>} {text}
    </span>
  );
}

function Progress({ entries }: { entries: readonly Entry[] }) {
  const [first] = entries;
  const last = entries.at(-1);
  if (first === undefined || last === undefined) return null;
  return (
    <span className={styles["second"]}>
      <span className={styles["method"]}>progress × {entries.length}</span> <span className={styles["quiet"]}>in {between(first, last)}</span>
    </span>
  );
}

/** The HTTP status; on a pipe there is none. */
export function Status({ exchange }: { exchange: Exchange }) {
  const { response, head } = factsOf(exchange);
  const pipe = pipeOf(head);
  if (response === null) return pipe === null ? null : <span className={styles["quiet"]} title="a message on a connection that carries all of them">{pipe}</span>;
  return response.status >= 400 ? <Badge tone="bad">{response.status}</Badge> : <span className={styles["quiet"]}>{response.status}</span>;
}

/** How an exchange ended, with what the judge found in it. */
export function End({ exchange }: { exchange: Exchange }) {
  const { mark, text } = endingOf(exchange);
  const judged = useJudged();
  const findings = judged.run === exchange.run && judged.byEntry.size > 0 ? exchange.entries.flatMap(({ seq }) => judged.byEntry.get(seq) ?? []) : [];
  // a rule may rest on several entries of one exchange
  const once = [...new Map(findings.map((finding) => [keyOf(finding), finding])).values()];
  return (
    <span title={text}>
      <FindingMarks findings={once} reachable={false} />
      {mark !== null && <Badge tone={mark.tone}>{mark.text}</Badge>} {text}
    </span>
  );
}

/** How long an exchange took. */
export function Took({ exchange }: { exchange: Exchange }) {
  const { duration } = factsOf(exchange);
  return duration === null ? null : <Duration ms={duration} />;
}

export function IdOf({ row }: { row: WireRow }) {
  const entry = entryOf(row)?.entry;
  return entry !== undefined && isMessage(entry) ? <Id entry={entry} /> : null;
}

/** How often the same happened, and when last. */
export function Times({ exchanges }: Pick<Repeat, "exchanges">) {
  const [first] = exchanges;
  const last = exchanges.at(-1);
  if (first === undefined || last === undefined) return null;
  return (
    <>
      <span className={styles["method"]}>× {exchanges.length}</span>{" "}
      <span className={styles["quiet"]}>
        last <Time at={last.entries[0]?.at ?? 0} />
      </span>{" "}
      <Said row={{ type: "exchange", key: first.key, exchange: first }} />
    </>
  );
}

/** All of an exchange in one cell of two lines, where there is no room for columns. */
export function Narrow({ exchange }: { exchange: Exchange }) {
  const { method, text } = askedBy(exchange, useMethod(exchange.run, factsOf(exchange).head));
  const { duration } = factsOf(exchange);
  return (
    <span className={styles["two"]}>
      <span className={styles["cut"]}>
        <span className={styles["method"]}>{method}</span> {text}
      </span>
      <span className={styles["cut"]}>
        <Time at={exchange.entries[0]?.at ?? 0} /> <Status exchange={exchange} /> <End exchange={exchange} /> {duration !== null && formatDuration(duration)} <ClientOf exchange={exchange} />
      </span>
    </span>
  );
}
