import { Link } from "wouter";
import { quoted } from "~/protocol/filter";
import type { Entry } from "~/protocol/schema";
import { counted } from "~/words/counted";
import { titleOf } from "~/words/summary";
import { between, Line, What } from "./cells";
import { useAllKnown } from "./known";
import styles from "./live.module.css";
import type { Relations } from "./relations";
import type { LiveUrl } from "./use-live-url";

/** What belongs together, for links such as `call:c7`: ids of the server. */
const TOPICS = ["client", "call", "task", "exchange", "stream", "connection"] as const;
type Topic = (typeof TOPICS)[number];

/** What an entry belongs to, as a filter line names it; null for nothing. The id of a stream is unique within its session only. */
function topicOf(entry: Entry, topic: Topic): string | null {
  if (topic === "client") return entry.label;
  const mine = entry[topic];
  if (mine === null) return null;
  return topic === "stream" ? `${entry.session}/${mine}` : String(mine);
}

interface RelatedProps {
  run: string;
  entry: Entry;
  url: LiveUrl;
}

/** Where to go on from an entry: its cause, what it caused, its call, its task, its exchange. */
export function Related({ run, entry, url }: RelatedProps) {
  const known = useAllKnown();
  const relations = known.relations(run);
  const to = (seq: number) => url.href({ at: `${run}-${seq}` });
  const { call, task, exchange, connection, session } = entry;
  return (
    <section>
      <h3>Related</h3>
      <ul className={styles["related"]}>
        <Cause entry={entry} relations={relations} to={to} />
        <Told entry={entry} relations={relations} to={to} />
        {call !== null && isToolCall(call, relations) && (
          <li>
            <Link href={`/calls/${run}.${call}`}>Tool call {call}</Link>
          </li>
        )}
        {task !== null && (
          <li>
            <Link href={`/calls/tasks/${encodeURIComponent(task)}`}>Task {task}</Link>
          </li>
        )}
        {connection !== null && entry.kind.startsWith("host.") && run === known.run && (
          <li>
            <Link href={`/server/hosts/${connection}`}>Tool host {connection}</Link>
          </li>
        )}
        {session !== null && run === known.run && (
          <li>
            <Link href={`/clients/${session}`}>Client {session}</Link>
          </li>
        )}
        {run === known.run &&
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
      <Listed run={run} title="It caused" entries={relations.effectsOf(entry.seq)} to={to} />
      {exchange !== null && <Listed run={run} title={`Exchange ${exchange}`} entries={relations.exchangeOf(entry)} to={to} />}
    </section>
  );
}

// other requests run as calls too, and only those of tools are in the audit; what is not known has its chance there
function isToolCall(call: string, relations: Relations): boolean {
  const started = relations.calls.get(call);
  return started === undefined || started.tool !== null;
}

interface CauseProps {
  entry: Entry;
  relations: Relations;
  to: (seq: number) => string;
}

/** The entry because of which this one happened: of an answer its request. */
function Cause({ entry, relations, to }: CauseProps) {
  const { cause } = entry;
  if (cause === null) return null;
  const found = relations.bySeq.get(cause);
  const isRequest = relations.requestOf(entry) !== undefined;
  return (
    <li>
      {isRequest ? "Request " : "Because of "}
      <Link href={to(cause)}>#{cause}</Link>
      {found !== undefined && ` ${titleOf(found, relations.methodOf(found))}, ${between(found, entry)} before`}
    </li>
  );
}

/** The answer to a request, and the delivery of a message. */
function Told({ entry, relations, to }: CauseProps) {
  const answer = relations.answerOf(entry.seq);
  const delivery = entry.kind === "message.emitted" ? relations.deliveryOf(entry) : null;
  return (
    <>
      {answer !== undefined && (
        <li>
          <Link href={to(answer.seq)}>Answer #{answer.seq}</Link>, after {between(entry, answer)}
        </li>
      )}
      {delivery !== null && typeof delivery === "object" && (
        <li>
          <Link href={to(delivery.seq)}>Delivery #{delivery.seq}</Link>, after {between(entry, delivery)}
        </li>
      )}
    </>
  );
}

// an exchange with a stream may have thousands
const SHOWN = 40;

interface ListedProps {
  run: string;
  title: string;
  entries: readonly Entry[];
  to: (seq: number) => string;
}

/** Entries of this page, each with a link; nothing where there are none. */
function Listed({ run, title, entries, to }: ListedProps) {
  if (entries.length === 0) return null;
  return (
    <>
      <h4 className={styles["heading"]}>
        {title}: {counted(entries.length, "entry", "entries")} on this page
        {entries.length > SHOWN && `, the first ${SHOWN}`}
      </h4>
      <ol className={styles["exchange"]}>
        {entries.slice(0, SHOWN).map((each) => (
          <li key={each.seq}>
            <Link href={to(each.seq)}>#{each.seq}</Link>
            <span>
              <What run={run} entry={each} />
            </span>
            <span className={styles["cut"]}>
              <Line run={run} entry={each} />
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
