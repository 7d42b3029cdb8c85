import { Link } from "wouter";
import { traceHref } from "~/protocol/client";
import type { GatewayReport, GatewayTrial } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { Badge } from "~/ui/badge";
import { EmptyState, type Moment, Moments, Panel } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Strip } from "./findings";
import styles from "./gateway.module.css";
import { exchangesOf, type Line, type Pair, pairOf, type Seen, type Trace, traceOf, type Way, WAY_NAMES, WAYS } from "./run";

interface SideBySideProps {
  report: GatewayReport;
  step: string;
  turn: number;
}

/** One step as both ends saw it, without the gateway and through it. */
export function SideBySide({ report, step, turn }: SideBySideProps) {
  const pair = pairOf(step, turn, report);
  if (pair === undefined) {
    return (
      <EmptyState title={`The run has no turn ${turn} of the step ${step}`}>
        <Link href="/gateway">All checks</Link>
      </EmptyState>
    );
  }
  return <Both pair={pair} report={report} />;
}

function Both({ pair, report }: { pair: Pair; report: GatewayReport }) {
  const traces = WAYS.map((way) => [way, pair[way] && traceOf(pair[way])] as const);
  const last = Math.max(...traces.flatMap(([, trace]) => trace?.seen.map(({ offset }) => offset) ?? []), 1);
  const findings = report.findings.filter(({ trials }) => trials.some((index) => report.trials[index]?.step === pair.step));
  return (
    <div className={`${styles["run"]} column`}>
      <nav aria-label="The run" className={`${styles["pairs"]} row links`}>
        <Link href="/gateway">All checks</Link>
        {turnsOf(pair.step, report).map((turn) => (
          <Link key={turn} href={`/gateway?step=${encodeURIComponent(pair.step)}&turn=${turn}`} aria-current={turn === pair.turn ? "page" : undefined}>
            turn {turn}
          </Link>
        ))}
      </nav>
      <section aria-label="What it is">
        <h2>
          <code>{pair.step}</code>, turn {pair.turn}
        </h2>
        <p className="quiet">Rests on it: {findings.map(({ name, verdict }) => `${name} (${verdict})`).join(", ") || "nothing"}</p>
      </section>
      <Panel title="When messages were sent and arrived">
        <Strip traces={traces} last={last} />
      </Panel>
      {exchangesOf(pair).map(([name, lines]) => (
        <Exchange key={name} name={name} lines={lines} />
      ))}
      <div className={styles["both"]}>
        {traces.map(([way, trace]) => (
          <Panel key={way} title={WAY_NAMES[way]}>
            {trace === undefined ? <p>Not run on this path.</p> : <OneWay trial={pair[way]} trace={trace} way={way} run={report.log.run} />}
          </Panel>
        ))}
      </div>
    </div>
  );
}

const turnsOf = (step: string, { trials }: GatewayReport) => [...new Set(trials.filter((trial) => trial.step === step).map(({ turn }) => turn))];

const COLUMNS: readonly PlainColumn<Line>[] = [
  { key: "name", head: "What", cell: (line) => line.name },
  { key: "direct", head: WAY_NAMES.direct, cell: (line) => line.direct },
  { key: "through", head: WAY_NAMES.through, cell: (line) => (line.differs ? <Badge tone="warn">{line.through}</Badge> : line.through) },
];

/** One request on both ways; it is unfolded where both differ. */
function Exchange({ name, lines }: { name: string; lines: readonly Line[] }) {
  const different = lines.filter(({ differs }) => differs);
  return (
    <details className={`${styles["group"]} panel`} open={different.length > 0}>
      <summary>
        <h2>
          Request <code>{name}</code>
        </h2>
        <span className="quiet">
          {different.length === 0 ? "the same, but for times" : `differs: ${different.map((line) => line.name).join(", ")}`}
        </span>
      </summary>
      <div className={`${styles["inside"]} column`}>
        <PlainTable caption="What the client saw of it" columns={COLUMNS} rows={lines} rowKey={(line) => line.name} />
      </div>
    </details>
  );
}

interface OneWayProps {
  trial: GatewayTrial | undefined;
  trace: Trace;
  way: Way;
  /** The life of the server that has the entries. */
  run: string | null;
}

function OneWay({ trial, trace, way, run }: OneWayProps) {
  const here = useFeed((snapshot) => snapshot.hello?.run ?? null);
  const known = run !== null && run === here ? run : null;
  if (trial === undefined) return null;
  const { skipped, exchanges, exchanges_made: made, entries, entries_seen: seen, calls } = trial;
  return (
    <>
      {skipped !== "" && <p>Skipped: {skipped}.</p>}
      {!trace.oneClock && <p>The clocks of both ends differ, so the times of the probe count from its first entry.</p>}
      {made > exchanges.length && <p>The first {exchanges.length} of {made} requests.</p>}
      {seen > entries.length && <p>The first {entries.length} of {seen} entries of the probe's log.</p>}
      {entries.length > 0 && known === null && <p className="quiet">The log of this run is not on this server, so its entries are numbers and no links.</p>}
      {known !== null && calls.length > 0 && (
        <p className={`${styles["pairs"]} row links`}>
          <span className="quiet">Calls at the probe:</span>
          {calls.map((call) => (
            <Link key={call} href={`/calls/${known}.${call}`}>
              {call}
            </Link>
          ))}
        </p>
      )}
      <Moments label={`What both ends saw ${way === "direct" ? "without" : "with"} the gateway`} moments={trace.seen.map((each) => momentOf(each, known))} />
    </>
  );
}

function momentOf({ key, end, offset, what, detail, entry }: Seen, run: string | null): Moment {
  const number = entry && (run === null ? `#${entry.seq}` : <Link href={traceHref({ at: `${run}-${entry.seq}` })}>#{entry.seq}</Link>);
  return {
    key,
    offset: Math.round(offset * 1000) / 1000,
    what: (
      <>
        <Badge tone={end === "client" ? "info" : "neutral"}>{end}</Badge> <code>{what}</code>
      </>
    ),
    detail: (
      <>
        {number} {detail}
      </>
    ),
  };
}
