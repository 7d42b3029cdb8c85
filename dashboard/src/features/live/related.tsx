import { useMemo } from "react";
import { Link } from "wouter";
import type { Entry } from "~/api/schema";
import type { Belongs } from "./facts";
import { What, Line, between } from "./cells";
import type { Topic } from "./filters";
import { useKnown } from "./known";
import styles from "./live.module.css";
import type { Relations } from "./relations";
import type { useLiveUrl } from "./use-live-url";

interface RelatedProps {
  run: string;
  entry: Entry;
  url: ReturnType<typeof useLiveUrl>;
}

/** Where to go on from an entry: its other half, its call, its task, its exchange. */
export function Related({ run, entry, url }: RelatedProps) {
  const known = useKnown();
  const relations = known.relations(run);
  const to = (seq: number) => url.href({ at: `${run}-${seq}` });
  const { call, task, stream, exchange, connection }: Belongs = entry;
  const session = relations.sessionOf(entry);
  const only: readonly (readonly [Topic, string | null])[] = [
    ["call", call ?? null],
    ["task", task ?? null],
    ["stream", stream == null || session === null ? null : `${session}/${stream}`],
    ["exchange", exchange == null ? null : String(exchange)],
    ["connection", connection ?? null],
  ];
  return (
    <section>
      <h3>Related</h3>
      <ul className={styles["related"]}>
        <Halves entry={entry} relations={relations} to={to} />
        {call != null && isToolCall(call, relations) && (
          <li>
            <Link href={`/calls/${run}.${call}`}>Tool call {call}</Link>
          </li>
        )}
        {task != null && (
          <li>
            <Link href={`/tasks/${encodeURIComponent(task)}`}>Task {task}</Link>
          </li>
        )}
        {connection != null && entry.kind.startsWith("host.") && run === known.run && (
          <li>
            <Link href={`/hosts/${connection}`}>Tool host {connection}</Link>
          </li>
        )}
        {session !== null && run === known.run && (
          <li>
            <Link href={`/sessions/${session}`}>Client {session}</Link>
          </li>
        )}
        {run === known.run &&
          only.map(
            ([topic, value]) =>
              value !== null && (
                <li key={topic}>
                  <Link href={url.href({ ...NO_FILTERS, [topic]: value })}>
                    Only {topic} {value}
                  </Link>
                </li>
              ),
          )}
      </ul>
      {exchange != null && <Exchange run={run} exchange={exchange} relations={relations} to={to} />}
    </section>
  );
}

const NO_FILTERS = { session: "", direction: "", show: "", method: "", text: "", call: "", task: "", stream: "", exchange: "", connection: "" };

// other requests run as calls too, and only those of tools are in the audit; what is not known has its chance there
function isToolCall(call: string, relations: Relations): boolean {
  const started = relations.calls.get(call);
  return started === undefined || started.tool !== null;
}

interface HalvesProps {
  entry: Entry;
  relations: Relations;
  to: (seq: number) => string;
}

function Halves({ entry, relations, to }: HalvesProps) {
  const answer = relations.answers.get(entry.seq);
  const request = entry.pair === null ? undefined : relations.bySeq.get(entry.pair);
  const delivery = entry.kind === "message.emitted" ? relations.deliveryOf(entry) : null;
  return (
    <>
      {entry.pair !== null && (
        <li>
          <Link href={to(entry.pair)}>Request #{entry.pair}</Link>
          {request !== undefined && `, ${between(request, entry)} before`}
        </li>
      )}
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

interface ExchangeProps {
  run: string;
  exchange: number;
  relations: Relations;
  to: (seq: number) => string;
}

/** The entries of the same exchange that this page has. */
function Exchange({ run, exchange, relations, to }: ExchangeProps) {
  const entries = useMemo(() => [...relations.bySeq.values()].filter((each: Belongs) => each.exchange === exchange), [relations, exchange]);
  return (
    <>
      <h4 className={styles["heading"]}>
        Exchange {exchange}: {entries.length} {entries.length === 1 ? "entry" : "entries"} on this page
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
