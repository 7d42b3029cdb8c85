import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { DASHBOARD } from "~/protocol/address";
import { apiUrl } from "~/protocol/client";
import { type Scalar, writeJson } from "~/protocol/json";
import type { Entry, HttpRequest } from "~/protocol/schema";
import { useMcpAddress } from "~/protocol/use-server";
import { directionOf } from "~/trace/evidence";
import { Button } from "~/ui/button";
import { CopyButton } from "~/ui/copy-button";
import { Drawer } from "~/ui/drawer";
import { Fact, Facts, KeyValues } from "~/ui/key-values";
import { Time } from "~/ui/time";
import { EntryMarks } from "~/widgets/finding-mark";
import { JsonView } from "~/widgets/json-view";
import { TypedValue } from "~/widgets/typed-value";
import { curlOfRequest } from "~/words/curl";
import { Era, Line, Way, Who } from "./cells";
import { useAllKnown, useKnown } from "./known";
import styles from "./live.module.css";
import { Related } from "./related";
import type { LiveUrl } from "./use-live-url";

interface EntryPanelProps {
  run: string;
  entry: Entry;
  url: LiveUrl;
  /** The neighbours in the list, where there are any. */
  above: (() => void) | null;
  below: (() => void) | null;
  onClose: () => void;
}

/** Everything about one entry: what was sent first, then what it belongs to; where and when it was recorded is folded. */
export function EntryPanel({ run, entry, url, above, below, onClose }: EntryPanelProps) {
  const known = useAllKnown();
  const method = known.relations(run).methodOf(entry);
  const actions = (
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
    <Drawer title={`#${entry.seq} ${method ?? entry.kind}`} of={`${run}-${entry.seq}`} onClose={onClose} actions={actions}>
      <p className={styles["summary"]}>
        <EntryMarks run={run} seq={entry.seq} />
        {directionOf(entry) !== null && <Way run={run} entry={entry} />} <Line run={run} entry={entry} />
      </p>
      <p className={styles["copies"]}>
        <CopyButton label="Copy JSON" text={() => writeJson(entry, 2)} />
        <CopyCurl run={run} entry={entry} />
        <CopyButton label="Copy link" text={() => `${location.origin}${DASHBOARD}/live?at=${run}-${entry.seq}`} />
        {run === known.run && <CopyButton label="Copy API link" text={() => `${location.origin}${apiUrl(`/events/${entry.seq}`)}`} />}
        {run === known.run && entry.session !== null && <Link href={`/ladder?client=${encodeURIComponent(entry.session)}&at=${entry.seq}`}>In the ladder</Link>}
      </p>
      <Values entry={entry} />
      <Related run={run} entry={entry} url={url} />
      <details className={styles["details"]}>
        <summary>When, where and under what names it was recorded</summary>
        <KeyValues items={[...place(run, entry), ...facts(entry)]} />
      </details>
      <Whole key={entry.seq} run={run} entry={entry} />
    </Drawer>
  );
}

/** Of a request over HTTP and of a message in it: the command that sends it again. */
function CopyCurl({ run, entry }: { run: string; entry: Entry }) {
  const exchange = useAllKnown().relations(run).exchangeOf(entry);
  const address = useMcpAddress();
  const request = exchange.find((each): each is HttpRequest => each.kind === "http.request");
  if (request === undefined || address === null || !(entry.kind === "http.request" || entry.kind === "message.received")) return null;
  return <CopyButton label="Copy as curl" text={() => curlOfRequest(request, exchange, address.replace(/\/mcp$/, ""))} />;
}

type Named = readonly [string, ReactNode];

function place(run: string, entry: Entry): readonly Named[] {
  return [
    ["kind", <code key="kind">{entry.kind}</code>],
    ["time", <Moment key="time" entry={entry} />],
    ["run", run],
    ["belongs to", (entry.session ?? entry.label) === null ? null : <Who key="who" run={run} entry={entry} />],
    ["era, revision", entry.session === null ? null : <Era key="era" run={run} entry={entry} />],
    ["direction", directionOf(entry) === null ? null : <Way key="direction" run={run} entry={entry} />],
  ];
}

function Moment({ entry }: { entry: Entry }) {
  return (
    <>
      <Time at={entry.at} look="both" /> <span className={styles["quiet"]}>monotonic {entry.mono.toFixed(6)} s</span>
    </>
  );
}

// what `place` and the rest of the panel show already
const ELSEWHERE = new Set(["seq", "kind", "at", "mono", "cause"]);

function isScalar(value: unknown): value is Scalar {
  return value === null || typeof value !== "object";
}

/** All its members of one word, under the names that the contract gives them. */
function facts(entry: Entry): readonly Named[] {
  return Object.entries(entry).flatMap(([name, value]: [string, unknown]): readonly Named[] =>
    ELSEWHERE.has(name) || !isScalar(value) ? [] : [[name, valueOf(name, value)]],
  );
}

const TYPED = new Set(["id", "request_id", "progress_token"]);

function valueOf(name: string, value: Scalar): ReactNode {
  if (value === null) return null;
  return TYPED.has(name) ? <TypedValue value={value} /> : String(value);
}

/** Its members that are larger: the message, the headers, the capabilities. */
function Values({ entry }: { entry: Entry }) {
  return Object.entries(entry).map(([name, value]: [string, unknown]) => {
    if (isScalar(value) || (Array.isArray(value) && value.length === 0)) return null;
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

function Whole({ run, entry }: { run: string; entry: Entry }) {
  const [open, setOpen] = useState(false);
  const current = useKnown((known) => known.run === run);
  return (
    <>
      <p className={styles["links"]}>
        <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide the whole entry" : "Show the whole entry"}
        </Button>
        {current && <a href={apiUrl(`/events/${entry.seq}`)}>as the API gives it</a>}
      </p>
      {open && <JsonView title="Whole entry" value={entry} open={3} />}
    </>
  );
}
