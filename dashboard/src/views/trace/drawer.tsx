import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { ApiError, apiUrl, DASHBOARD, traceHref, useMcpAddress } from "~/protocol/client";
import { type Scalar, writeJson } from "~/protocol/json";
import type { HttpRequest } from "~/protocol/schema";
import { isMessage, type Span, type Viewed } from "~/trace/entry";
import { useFeed, useTheFeed } from "~/trace/feed";
import { useEnd, useEntry } from "~/trace/use-trace";
import { Button, CopyButton } from "~/ui/buttons";
import { Drawer } from "~/ui/drawer";
import { Fact, Facts, KeyValues } from "~/ui/panel";
import { Time } from "~/ui/time";
import { EraBadge, TypedValue } from "~/widgets/badges";
import { EntryMarks } from "~/widgets/findings";
import { JsonView } from "~/widgets/json-view";
import { curlOfRequest } from "~/words/curl";
import { kindOf, titleOf } from "~/words/entries";
import { EntryClient, Line, useClient, Way } from "./entry-columns";
import { Related } from "./related";
import { Outcome } from "./request-columns";
import { chosenBy, type Row } from "./rows";
import styles from "./trace.module.css";
import { type Place, placeOf, type TraceUrl } from "./url";

interface SelectedProps {
  url: TraceUrl;
  /** The present run. */
  run: string;
  rows: readonly Row[];
  onOpen: (run: string, seq: number) => void;
}

/** The panel of the entry that the address selects, wherever it has to be taken from. */
export function Selected({ url, run: current, rows, onOpen }: SelectedProps) {
  const { trace } = useTheFeed();
  const place = placeOf(url.at);
  const run = place?.run ?? current;
  const entry = useFeed(() => (place === null ? undefined : trace.entryOf(run, place.seq)));
  const onClose = () => url.change({ at: "" }, true);
  if (url.at === "") return null;
  if (place === null) return <Gone title={url.at} why={`“${url.at}” is not a place in the log. Use a number, or RUN-NUMBER.`} onClose={onClose} />;
  if (entry === undefined) return <Fetched place={place} current={current} url={url} onClose={onClose} />;
  const index = rows.findIndex((row) => isOf(row, run, entry.seq));
  const go = (step: number) => {
    const next = index === -1 ? null : neighbour(rows, index, step);
    return next === null ? null : () => onOpen(next.run, next.seq);
  };
  return <EntryDrawer run={run} current={current} entry={entry} url={url} above={go(-1)} below={go(1)} onClose={onClose} />;
}

function isOf(row: Row, run: string, seq: number): boolean {
  const shown = chosenBy(row);
  return shown !== null && shown.run === run && shown.seq === seq;
}

/** What the nearest row that shows another entry shows. */
function neighbour(rows: readonly Row[], index: number, step: number) {
  const from = rows[index];
  const here = from === undefined ? null : chosenBy(from);
  for (let at = index + step; at >= 0 && at < rows.length; at += step) {
    const row = rows[at];
    const shown = row === undefined ? null : chosenBy(row);
    if (shown !== null && shown.seq !== here?.seq) return shown;
  }
  return null;
}

/** An entry that this page does not have (any more). */
function Fetched({ place, current, url, onClose }: { place: Place; current: string; url: TraceUrl; onClose: () => void }) {
  const other = place.run !== null && place.run !== current;
  const { data, error } = useEntry(other ? "" : current, place.seq);
  const title = `#${place.seq}`;
  if (current === "") return <Gone title={title} why="The server has not been reached yet." onClose={onClose} />;
  if (other) {
    const why = `It belongs to run ${place.run} of the server, which is over; its log went with it. The current run is ${current}.`;
    return <Gone title={title} why={why} onClose={onClose} />;
  }
  if (error !== null) {
    const why = error instanceof ApiError ? `The server says: ${error.message}.` : `It could not be loaded: ${error.message}.`;
    return <Gone title={title} why={why} onClose={onClose} />;
  }
  if (data === undefined) return <Gone title={title} why="Loading…" onClose={onClose} />;
  return <EntryDrawer run={current} current={current} entry={data} url={url} onClose={onClose} />;
}

function Gone({ title, why, onClose }: { title: string; why: string; onClose: () => void }) {
  return (
    <Drawer title={title} of={title} onClose={onClose}>
      <p role="status">{why}</p>
    </Drawer>
  );
}

interface EntryDrawerProps {
  run: string;
  /** The present run. */
  current: string;
  entry: Viewed;
  url: TraceUrl;
  /** The neighbours in the list; null at its ends, undefined where there is no list. */
  above?: (() => void) | null;
  below?: (() => void) | null;
  onClose: () => void;
}

/** Everything about one entry: what was sent first, then what it belongs to; where and when it was recorded is folded. */
export function EntryDrawer({ run, current, entry, url, above, below, onClose }: EntryDrawerProps) {
  const { trace } = useTheFeed();
  const span = trace.spanOf(run, entry.view.exchange);
  const actions = above !== undefined && below !== undefined && (
    <>
      <Button small aria-label="The row above" disabled={above === null} onClick={() => above?.()}>
        ↑
      </Button>
      <Button small aria-label="The row below" disabled={below === null} onClick={() => below?.()}>
        ↓
      </Button>
    </>
  );
  return (
    <Drawer title={`${nameOf(entry, span)} #${entry.seq}`} of={`${run}-${entry.seq}`} onClose={onClose} actions={actions}>
      <p className={styles["summary"]}>
        <EntryMarks run={run} seq={entry.seq} />
        {entry.view.direction !== null && <Way entry={entry} />} <Line entry={entry} />
      </p>
      <p className="row">
        <CopyButton label="Copy JSON" text={() => writeJson(withoutView(entry), 2)} />
        <CopyCurl run={run} entry={entry} />
        <CopyButton label="Copy link" text={() => `${location.origin}${DASHBOARD}${traceHref({ at: `${run}-${entry.seq}` })}`} />
        {run === current && <CopyButton label="Copy API link" text={() => `${location.origin}${apiUrl(`/events/${entry.seq}`)}`} />}
        {run === current && entry.session !== null && url.view !== "ladder" && <Link href={url.href({ view: "ladder", filter: `client:${entry.session}`, at: `${run}-${entry.seq}` })}>In the ladder</Link>}
        {url.view === "ladder" && <Link href={url.href({ view: "" })}>In the list</Link>}
        {span !== undefined && <OnlyThisTime span={span} url={url} />}
      </p>
      {span !== undefined && (
        <p className={styles["summary"]}>
          <span className="quiet">Outcome of the request:</span> <Outcome span={span} whole />
        </p>
      )}
      <Values entry={entry} />
      <Related run={run} current={current} entry={entry} url={url} />
      <details className={styles["details"]}>
        <summary>When, where and under what names it was recorded</summary>
        <KeyValues items={[...placeFacts(run, entry), ...facts(entry)]} />
      </details>
      <Whole key={entry.seq} entry={entry} linked={run === current} />
    </Drawer>
  );
}

/** What it is for people: HTTP is named as HTTP, a message by its method. */
function nameOf(entry: Viewed, span: Span | undefined): string {
  const { method } = entry.view;
  const http = span?.row.request;
  if (http != null && (entry.kind.startsWith("http.") || (isMessage(entry) && method === null))) return [span?.row.status, http, entry.kind === "http.request" ? null : entry.kind === "http.response" ? "response" : entry.kind === "http.closed" ? "closed" : null].filter((part) => part != null).join(" ");
  return isMessage(entry) ? titleOf(entry, method) : kindOf(entry.kind);
}

/** Shows no more time than a request and its work took. */
function OnlyThisTime({ span: { from, until }, url }: { span: Span; url: TraceUrl }) {
  const logEnd = useEnd();
  const choose = () => {
    const end = until ?? logEnd ?? Date.now() / 1000;
    const margin = Math.max(0.005, (end - from) * 0.1);
    url.setRange({ from: from - margin, until: end + margin });
  };
  return (
    <Button small onClick={choose}>
      Only this time
    </Button>
  );
}

/** Of a request over HTTP and of a message in it: the command that sends it again. */
function CopyCurl({ run, entry }: { run: string; entry: Viewed }) {
  const { trace } = useTheFeed();
  const address = useMcpAddress();
  const exchange = trace.entriesOf(run, entry.view.exchange);
  const request = exchange.find((each) => each.kind === "http.request") as HttpRequest | undefined;
  if (request === undefined || address === null || !(entry.kind === "http.request" || entry.kind === "message.received")) return null;
  return <CopyButton label="Copy as curl" text={() => curlOfRequest(request, exchange, address.replace(/\/mcp$/, ""))} />;
}

type Named = readonly [string, ReactNode];

function placeFacts(run: string, entry: Viewed): readonly Named[] {
  return [
    ["kind", <code key="kind">{entry.kind}</code>],
    ["time", <Moment key="time" entry={entry} />],
    ["run", run],
    ["belongs to", (entry.session ?? entry.label) === null ? null : <EntryClient key="who" run={run} entry={entry} />],
    ["protocol", entry.session === null ? null : <Revision key="revision" run={run} session={entry.session} />],
    ["direction", entry.view.direction === null ? null : <Way key="direction" entry={entry} />],
  ];
}

function Revision({ run, session }: { run: string; session: string }) {
  const client = useClient(run, session);
  return client === null ? null : (
    <>
      <EraBadge era={client.era ?? ""} /> <span className="aside">{client.revision}</span>
    </>
  );
}

function Moment({ entry }: { entry: Viewed }) {
  return (
    <>
      <Time at={entry.at} look="both" /> <span className="aside">monotonic {entry.mono.toFixed(6)} s</span>
    </>
  );
}

// what `placeFacts` and the rest of the panel show already
const ELSEWHERE = new Set(["seq", "kind", "at", "mono", "cause", "view"]);

function isScalar(value: unknown): value is Scalar {
  return value === null || typeof value !== "object";
}

/** All its members of one word, under the names that the contract gives them. */
function facts(entry: Viewed): readonly Named[] {
  return Object.entries(entry).flatMap(([name, value]: [string, unknown]): readonly Named[] => (ELSEWHERE.has(name) || !isScalar(value) ? [] : [[name, valueOf(name, value)]]));
}

const TYPED = new Set(["id", "request_id", "progress_token"]);

function valueOf(name: string, value: Scalar): ReactNode {
  if (value === null) return null;
  return TYPED.has(name) ? <TypedValue value={value} /> : String(value);
}

/** Its members that are larger: the message, the headers, the capabilities. */
function Values({ entry }: { entry: Viewed }) {
  return Object.entries(entry).map(([name, value]: [string, unknown]) => {
    if (name === "view" || isScalar(value) || (Array.isArray(value) && value.length === 0)) return null;
    return name === "headers" ? <Headers key={name} pairs={value} /> : <JsonView key={name} title={name} value={value} open={3} />;
  });
}

function Headers({ pairs }: { pairs: unknown }) {
  const headers = pairs as readonly (readonly [string, string])[];
  return (
    <section>
      <h3>Headers</h3>
      <Facts>
        {headers.map(([name, value], index) => (
          // a header may come twice
          // oxlint-disable-next-line react/no-array-index-key
          <Fact key={index} name={name}>
            {value}
          </Fact>
        ))}
      </Facts>
    </section>
  );
}

/** The entry as the log has it. */
function withoutView(entry: Viewed): object {
  return Object.fromEntries(Object.entries(entry).filter(([name]) => name !== "view"));
}

function Whole({ entry, linked }: { entry: Viewed; linked: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <p className="row">
        <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide the whole entry" : "Show the whole entry"}
        </Button>
        {linked && <a href={apiUrl(`/events/${entry.seq}`)}>as the API gives it</a>}
      </p>
      {open && <JsonView title="Whole entry" value={withoutView(entry)} open={3} />}
    </>
  );
}
