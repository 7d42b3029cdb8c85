import type { ReactNode } from "react";
import type { Span, Viewed } from "~/trace/entry";
import { useTheFeed } from "~/trace/feed";
import { keyOf, useJudged } from "~/trace/findings";
import { useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import type { Column } from "~/ui/grid-columns";
import { Duration, Time } from "~/ui/time";
import { formatDuration, formatOffset } from "~/ui/time-format";
import { FilterBy } from "~/widgets/filter-line";
import { FindingMarks } from "~/widgets/findings";
import { endingOf, titleOfSpan } from "~/words/spans";
import { summaryOf } from "~/words/entries";
import { between, ClientCell, Id, Way, What } from "./entry-columns";
import { isOpen, type Row, spanOf } from "./rows";
import styles from "./trace.module.css";
import { Waterfall, WaterfallAxis } from "./waterfall";

interface Options {
  /** Whether the log has ended, so that nothing goes on. */
  ended: boolean;
  open: ReadonlySet<string>;
  onToggle: (row: Row) => void;
}

/** A cell that exchanges have, and rows of several equal ones. */
const spanCell = (cell: (span: Span) => ReactNode) => (row: Row) => {
  const span = row.type === "span" || row.type === "repeat" ? spanOf(row) : null;
  return span === null ? null : cell(span);
};

/** A cell that differs from one to the next of several equal exchanges. */
const ownCell = (cell: (span: Span) => ReactNode) => (row: Row) => (row.type === "span" ? cell(row.span) : null);

const bySpan = <Value,>(value: (span: Span) => Value) => (row: Row) => {
  const span = spanOf(row);
  return span === null ? undefined : value(span);
};

/** The columns of the list of requests. Below 60 rem there stays what says how they ended. */
export function requestColumns({ ended, open, onToggle }: Options): readonly Column<Row>[] {
  return [
    { key: "time", head: "Time", width: { fit: [4, 9] }, sortBy: bySpan(({ from }) => from), cell: (row) => <When row={row} /> },
    {
      key: "client",
      head: "Client",
      width: { grow: 1, least: 5 },
      from: 52,
      sortBy: bySpan(({ row }) => row.session ?? row.label),
      cell: (row) => (row.type === "message" ? <Way entry={row.entry} /> : spanCell((span) => <ClientCell span={span} />)(row)),
    },
    {
      key: "request",
      head: "Request",
      width: { fit: [9, 24] },
      sortBy: bySpan((span) => `${titleOfSpan(span).name} ${span.row.target}`),
      cell: (row) => (
        <>
          <Fold row={row} open={open} onToggle={onToggle} />
          <Asked row={row} />
        </>
      ),
    },
    { key: "id", head: "Id", width: { fit: [2, 7] }, from: 84, sortBy: bySpan(({ head }) => (head !== null && "rpc" in head && head.id !== null ? String(head.id) : null)), cell: (row) => <Id entry={row.type === "span" ? row.span.head : row.type === "message" ? row.entry : null} /> },
    { key: "status", head: "Status", title: "The HTTP status; a message on a connection that carries all of them has none", width: { fit: [2.5, 5] }, from: 44, sortBy: bySpan(({ row }) => row.status), cell: spanCell((span) => <Status span={span} />) },
    { key: "outcome", head: "Outcome", width: { grow: 3, least: 8 }, sortBy: bySpan((span) => outcomeText(span, ended)), cell: spanCell((span) => <Outcome span={span} />) },
    { key: "took", head: "Took", width: { fit: [3.5, 7] }, align: "end", from: 60, sortBy: bySpan(({ row }) => row.duration_ms), cell: ownCell(({ row }) => (row.duration_ms === null ? null : <Duration ms={row.duration_ms} />)) },
    { key: "waterfall", head: "Time line", axis: <WaterfallAxis />, width: { grow: 1.5, least: 8 }, from: 72, paper: false, cell: ownCell((span) => <Waterfall span={span} />) },
  ];
}

/** All of an exchange in two lines, for a phone. */
export function card(row: Row): ReactNode {
  const span = spanOf(row);
  if (span === null || (row.type !== "span" && row.type !== "repeat")) return <Asked row={row} />;
  return (
    <span className={styles["two"]}>
      <span className="cut">
        <Asked row={row} />
      </span>
      <span className="cut">
        <Time at={span.row.began.at} /> <Status span={span} /> <Outcome span={span} /> {span.row.duration_ms !== null && formatDuration(span.row.duration_ms)} <ClientCell span={span} />
      </span>
    </span>
  );
}

/** Opens and closes a row that has others below it. */
function Fold({ row, open, onToggle }: { row: Row } & Omit<Options, "ended">) {
  const is = isOpen(row, open);
  if (is === undefined) return <span className={styles["fold"]} />;
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
function When({ row }: { row: Row }) {
  const span = spanOf(row);
  if (span === null) return null;
  const { began } = span.row;
  if (row.type === "span" || row.type === "repeat") return <Time at={began.at} />;
  const entry = row.type === "message" ? row.entry : row.type === "progress" ? row.entries[0] : undefined;
  return entry === undefined ? null : <span className="aside">{formatOffset((entry.mono - began.mono) * 1000)}</span>;
}

/** What was asked, and of a message below an exchange what it says. */
function Asked({ row }: { row: Row }) {
  if (row.type === "progress") return <Reports entries={row.entries} />;
  if (row.type === "message") return <Message entry={row.entry} level={row.level} />;
  const span = spanOf(row);
  if (span === null) return null;
  const { name, text } = titleOfSpan(span);
  const { target, method } = span.row;
  const rest = target !== "" && text.startsWith(target) ? text.slice(target.length) : text;
  return (
    <span title={`${name} ${text}`} className={row.type === "span" && row.under === true ? styles["second"] : undefined}>
      {row.type === "repeat" && <Times spans={row.spans} />}
      {span.head?.view.direction === "out" && <span className="aside">← </span>}
      <span className={styles["method"]}>{method === null ? name : <FilterBy word="method" value={method}>{name}</FilterBy>}</span>{" "}
      {rest !== text && (method === "tools/call" ? <FilterBy word="tool" value={target}>{target}</FilterBy> : target)}
      <span className="aside">{rest}</span>
    </span>
  );
}

function Message({ entry, level }: { entry: Viewed; level: number }) {
  const { mark, text } = summaryOf(entry, entry.view.method);
  return (
    <span className={level === 3 ? styles["third"] : styles["second"]} title={text}>
      <What entry={entry} /> {mark !== undefined && <Badge tone={mark.tone}>{mark.text}</Badge>} {text}
    </span>
  );
}

function Reports({ entries }: { entries: readonly Viewed[] }) {
  const [first] = entries;
  const last = entries.at(-1);
  if (first === undefined || last === undefined) return null;
  return (
    <span className={styles["second"]}>
      <span className={styles["method"]}>progress × {entries.length}</span> <span className="aside">in {between(first, last)}</span>
    </span>
  );
}

/** How often the same happened, and when last. */
function Times({ spans }: { spans: readonly Span[] }) {
  const last = spans.at(-1);
  return (
    <>
      <span className={styles["method"]}>× {spans.length}</span>{" "}
      <span className="aside">
        last <Time at={last?.row.began.at ?? 0} />
      </span>{" "}
    </>
  );
}

/** The HTTP status; of what came on another connection, which. */
function Status({ span: { row } }: { span: Span }) {
  const { status, transport } = row;
  if (status === null) return transport === "http" || transport === null ? null : <span className="aside">{SHORT[transport]}</span>;
  return (
    <FilterBy word="status" value={String(status)}>
      {status >= 400 ? <Badge tone="bad">{status}</Badge> : <span className="aside">{status}</span>}
    </FilterBy>
  );
}

const SHORT: Readonly<Record<string, string>> = { websocket: "ws", stdio: "stdio", host: "host" };

const OUTCOMES = new Set(["running", "completed", "tool_error", "protocol_error", "cancelled", "timed_out", "disconnected", "input_required"]);

/** How an exchange ended, as it is read and sorted; null where there is no more to say than that it did. */
function outcomeText(span: Span, ended: boolean): string | null {
  const { mark, text } = endingOf(span, ended);
  return [mark?.text ?? "", text].filter((part) => part !== "").join(" ") || null;
}

/** How an exchange ended, with what the judge found in it; `whole` where it is not cut, and the findings stand beside it. */
export function Outcome({ span, whole = false }: { span: Span; whole?: boolean }) {
  const ended = useEnded();
  const { mark, text } = endingOf(span, ended);
  const { state } = span.row.ending;
  const badge = mark !== null && <Badge tone={mark.tone}>{mark.text}</Badge>;
  return (
    <span title={whole ? undefined : (outcomeText(span, ended) ?? undefined)}>
      {!whole && <SpanMarks span={span} />}
      {OUTCOMES.has(state) && badge !== false ? <FilterBy word="outcome" value={state}>{badge}</FilterBy> : badge} {text}
    </span>
  );
}

/** The findings of the judge on an exchange. */
function SpanMarks({ span }: { span: Span }) {
  const { run, byEntry } = useJudged();
  const { trace } = useTheFeed();
  if (run !== span.run || byEntry.size === 0) return null;
  const findings = trace.entriesOf(run, span.row.exchange).flatMap(({ seq }) => byEntry.get(seq) ?? []);
  // a rule may rest on several entries of one exchange
  return <FindingMarks findings={[...new Map(findings.map((finding) => [keyOf(finding), finding])).values()]} reachable={false} />;
}
