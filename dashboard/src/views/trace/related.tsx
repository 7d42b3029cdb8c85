import { Link } from "wouter";
import { quoted } from "~/protocol/filter";
import { isAnswer, type Viewed } from "~/trace/entry";
import { useTheFeed } from "~/trace/feed";
import { kindOf, titleOf } from "~/words/entries";
import { counted } from "~/words/text";
import { between, Line, What } from "./entry-columns";
import styles from "./trace.module.css";
import type { TraceUrl } from "./url";

/** What belongs together, for links such as `call:c7`: ids of the server. */
const TOPICS = ["client", "call", "task", "exchange", "stream", "connection"] as const;

/** What an entry belongs to, as a filter line names it; null for nothing. The id of a stream is unique within its session only. */
function topicOf(entry: Viewed, topic: (typeof TOPICS)[number]): string | null {
  if (topic === "client") return entry.label ?? entry.session;
  const mine = entry[topic];
  if (mine === null) return null;
  return topic === "stream" ? `${entry.session}/${mine}` : String(mine);
}

interface RelatedProps {
  run: string;
  /** The present run. */
  current: string;
  entry: Viewed;
  url: TraceUrl;
}

/** Where to go on from an entry: its cause, what it caused, its call, its task, its exchange. */
export function Related({ run, current, entry, url }: RelatedProps) {
  const { trace } = useTheFeed();
  const to = (seq: number) => url.href({ at: `${run}-${seq}` });
  const { call, task, exchange, connection, session, seq, view } = entry;
  const answer = trace.answerOf(run, entry);
  const caused = trace.view().runs.findLast((each) => each.run === run)?.entries.flatMap((each) => (each.entry.cause === seq ? [each.entry] : [])) ?? [];
  return (
    <section>
      <h3>Related</h3>
      <ul className={`${styles["related"]} row links`}>
        <Cause run={run} entry={entry} to={to} />
        {answer !== undefined && (
          <li>
            <Link href={to(answer.seq)}>Answer #{answer.seq}</Link>, after {between(entry, answer)}
          </li>
        )}
        {view.delivered !== null && (
          <li>
            <Link href={to(view.delivered.seq)}>Received #{view.delivered.seq}</Link>, after {between(entry, view.delivered)}
          </li>
        )}
        {call !== null && isToolCall(trace.entriesOf(run, view.exchange, call), call) && (
          <li>
            <Link href={`/calls/${run}.${call}`}>Tool call {call}</Link>
          </li>
        )}
        {task !== null && (
          <li>
            <Link href={`/calls/tasks/${encodeURIComponent(task)}`}>Task {task}</Link>
          </li>
        )}
        {connection !== null && entry.kind.startsWith("host.") && run === current && (
          <li>
            <Link href={`/server/hosts/${connection}`}>Tool host {connection}</Link>
          </li>
        )}
        {session !== null && run === current && (
          <li>
            <Link href={`/clients/${session}`}>Client {session}</Link>
          </li>
        )}
        {run === current &&
          TOPICS.map((topic) => ({ topic, value: topicOf(entry, topic) })).map(
            ({ topic, value }) =>
              value !== null && (
                <li key={topic}>
                  <Link href={url.href({ filter: `${topic}:${quoted(value)}` })}>
                    Only {topic} {value}
                  </Link>
                </li>
              ),
          )}
      </ul>
      <Listed title="It caused" entries={caused} to={to} />
      {exchange !== null && <Listed title={`Exchange ${exchange}`} entries={trace.entriesOf(run, exchange)} to={to} />}
    </section>
  );
}

// other requests run as calls too, and only those of tools are in the audit; what is not known has its chance there
function isToolCall(entries: readonly Viewed[], call: string): boolean {
  const started = entries.find((entry) => entry.kind === "call.started" && entry.call === call);
  return started?.kind !== "call.started" || started.tool !== null;
}

interface CauseProps {
  run: string;
  entry: Viewed;
  to: (seq: number) => string;
}

/** The entry because of which this one happened: of an answer its request. */
function Cause({ run, entry, to }: CauseProps) {
  const { trace } = useTheFeed();
  const { cause } = entry;
  if (cause === null) return null;
  const found = trace.entryOf(run, cause);
  return (
    <li>
      {isAnswer(entry) && trace.requestOf(run, entry) !== undefined ? "Request " : "Because of "}
      <Link href={to(cause)}>#{cause}</Link>
      {found !== undefined && ` ${"rpc" in found ? titleOf(found, found.view.method) : kindOf(found.kind)}, ${between(found, entry)} before`}
    </li>
  );
}

// an exchange with a stream may have thousands
const SHOWN = 40;

interface ListedProps {
  title: string;
  entries: readonly Viewed[];
  to: (seq: number) => string;
}

/** Entries of this page, each with a link; nothing where there are none. */
function Listed({ title, entries, to }: ListedProps) {
  if (entries.length === 0) return null;
  return (
    <>
      <h4 className={`${styles["heading"]} aside`}>
        {title}: {counted(entries.length, "entry", "entries")} on this page
        {entries.length > SHOWN && `, the first ${SHOWN}`}
      </h4>
      <ol className={styles["exchange"]}>
        {entries.slice(0, SHOWN).map((each) => (
          <li key={each.seq}>
            <Link href={to(each.seq)}>#{each.seq}</Link>
            <span>
              <What entry={each} />
            </span>
            <span className="cut">
              <Line entry={each} />
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
