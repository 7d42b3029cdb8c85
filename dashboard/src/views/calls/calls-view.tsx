import { useMemo } from "react";
import { Link, useLocation, useParams } from "wouter";
import { ApiError, apiUrl, traceHref, useMcpAddress } from "~/protocol/client";
import type { CallRow, ExchangeRow } from "~/protocol/schema";
import { offsetOf, originOf, peerOf, type Viewed } from "~/trace/entry";
import { useFeed } from "~/trace/feed";
import { useJudged } from "~/trace/findings";
import { type CallWithEvidence, useCallDetail, useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { CopyButton } from "~/ui/buttons";
import { Page } from "~/ui/page";
import { CodeBlock, EmptyState, Moments, Panel, Panels, Stack } from "~/ui/panel";
import { Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { DirectionBadge } from "~/widgets/badges";
import { FindingMarks } from "~/widgets/findings";
import { JsonView } from "~/widgets/json-view";
import { Ladder } from "~/widgets/ladder/ladder";
import { layoutOf, usePicture } from "~/widgets/ladder/picture";
import { rowsOf } from "~/widgets/ladder/rows";
import { curlOfCall } from "~/words/curl";
import { describe, kindOf } from "~/words/entries";
import { sentenceOf, toneOfEnding } from "~/words/spans";
import { stateOf } from "~/words/states";
import { begun, clientOf, counted } from "~/words/text";
import { CallFacts } from "./call-facts";
import { CallList } from "./call-list";
import { isCut, stateOfCall } from "./calls";
import styles from "./calls.module.css";

export default function CallsView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <CallList /> : <CallPage key={id} id={id} />;
}

/** One call with all that is known of it. */
function CallPage({ id }: { id: string }) {
  const run = useFeed((snapshot) => snapshot.hello?.run);
  const row = useFeed((snapshot) => snapshot.tables.calls.find((call) => call.id === id));
  const detail = useCallDetail(id, row);
  const ended = useEnded();
  return (
    <Page title={titleOf(row ?? detail.data?.call, id, ended)} up={["/calls", "Calls"]} tools={<Tools id={id} detail={detail.data} current={detail.data?.call.run === run} />} scroll>
      {detail.data === undefined ? <Missing id={id} error={detail.error} /> : <Detail detail={detail.data} row={row} run={run} />}
    </Page>
  );
}

/** `progress, cancelled`: what the call is for people; its id stands beside. */
function titleOf(call: CallRow | undefined, id: string, ended: boolean): string {
  return call === undefined ? `Call ${id}` : `${call.tool}, ${stateOf(stateOfCall(call, ended)).label}`;
}

/** The row of the feed is newer than the answer of the API, when it is there. */
function Detail({ detail, row, run }: { detail: CallWithEvidence; row: CallRow | undefined; run: string | undefined }) {
  const call = row ?? detail.call;
  const current = call.run === run;
  const { byEntry } = useJudged();
  const findings = current ? [...new Set(detail.evidence.events.flatMap(({ seq }) => byEntry.get(seq) ?? []))] : [];
  return (
    <Stack>
      <Conclusion call={call} ending={detail.evidence.exchanges.find((each) => each.call === call.call)?.ending} />
      {findings.length > 0 && (
        <p>
          Findings of the judge on it: <FindingMarks findings={findings} />
        </p>
      )}
      <Panels>
        <Panel title="Arguments">
          <JsonPart title={`arguments of ${call.tool}`} value={call.arguments} />
        </Panel>
        {call.result !== null && (
          <Panel title="Result">
            <JsonPart title={`result of ${call.tool}`} value={call.result} />
          </Panel>
        )}
      </Panels>
      <LadderPanel call={call} evidence={detail.evidence} />
      <EvidencePanel evidence={detail.evidence} current={current} />
      <CallFacts call={call} entries={detail.evidence.events} current={current} />
    </Stack>
  );
}

/** The answer of the page, before all that it rests on; the text of the `ending` is the server's. */
function Conclusion({ call, ending }: { call: CallRow; ending: ExchangeRow["ending"] | undefined }) {
  const state = stateOfCall(call, useEnded());
  const says = begun(conclusionOf(call, state, ending?.text ?? ""));
  return (
    <section className={styles["conclusion"]} data-tone={toneOfEnding({ state, sent_after: ending?.sent_after ?? 0 })} aria-label="Conclusion">
      <p className={styles["says"]} role="status">
        {/* the text of a tool may have a full stop of its own */}
        {/[.!?…]$/.test(says) ? says : `${says}.`}
      </p>
      <p>
        {call.tool}, called by {call.session ?? "an unknown client"} {clientOf(call)} at <Time at={call.started_at} look="both" />
      </p>
    </section>
  );
}

function conclusionOf(call: CallRow, state: string, text: string): string {
  const { outcome, duration_ms: ms } = call;
  if (outcome === "lost") return "lost: the server ended before it recorded the end of the call";
  if (outcome === "completed") return [`completed after ${ms === null ? "an unknown time" : formatDuration(ms)}`, text].filter((part) => part !== "").join("; ");
  return sentenceOf({ state, text });
}

interface ToolsProps {
  id: string;
  detail: CallWithEvidence | undefined;
  current: boolean;
}

function Tools({ id, detail, current }: ToolsProps) {
  const call = detail?.call;
  return (
    <nav className="row apart" aria-label="Call">
      <code>{id}</code>
      {call && current && <Link href={traceHref({ filter: `call:${call.call}` })}>In the trace</Link>}
      {call && current && <Link href={`/export?call=${encodeURIComponent(id)}`}>Save as a file</Link>}
      <CopyButton text={() => location.href} label="Copy link" />
      <CopyButton text={() => new URL(apiUrl(`/calls/${encodeURIComponent(id)}`), location.href).href} label="Copy API link" />
      {detail && <CopyCurl detail={detail} />}
    </nav>
  );
}

function CopyCurl({ detail: { call, evidence } }: { detail: CallWithEvidence }) {
  const address = useMcpAddress();
  const command = address === null ? null : curlOfCall(call, evidence.events, address);
  return command === null ? null : <CopyButton text={command} label="Copy as curl" />;
}

function Missing({ id, error }: { id: string; error: Error | null }) {
  if (error === null) return <EmptyState title="Looking for the call" />;
  const gone = error instanceof ApiError && error.status === 404;
  return (
    <EmptyState title={gone ? "This call is not known" : "The call could not be read"}>
      <p role="alert">{error.message}</p>
      {gone && (
        <p>
          <code>{id}</code> may have made room for newer ones, or belong to an earlier run of a server without an audit file.
        </p>
      )}
    </EmptyState>
  );
}

// the text that a tool answers stands on the fourth level of its result
const LEVELS = 4;

/** JSON of a row: as a tree, or the beginning of it as text where no more was kept. */
function JsonPart({ title, value }: { title: string; value: unknown }) {
  if (!isCut(value)) return <JsonView title={title} value={value} open={LEVELS} />;
  return (
    <>
      <p>
        Cut: only the beginning of its {value.bytes} bytes was kept.
      </p>
      <CodeBlock title={`${title}, the beginning`} code={value.cut} wrap />
    </>
  );
}

// with the names of the lanes above it; a longer one scrolls
const HEADS = 34;
const TALLEST = 460;

const FOLDED: ReadonlySet<string> = new Set();

/** The messages of a call as a picture; a row leads to its entry. */
function LadderPanel({ call, evidence: { events, exchanges } }: { call: CallRow; evidence: CallWithEvidence["evidence"] }) {
  const [, navigate] = useLocation();
  const picture = usePicture(events, exchanges, `${call.session ?? ""} ${clientOf(call)}`.trim());
  const height = useMemo(() => Math.min(TALLEST, layoutOf(rowsOf(picture.steps, FOLDED), "even", 1).height + HEADS), [picture.steps]);
  if (picture.steps.length === 0) return null;
  const whole = `/trace?${new URLSearchParams({ call: call.id })}`;
  return (
    <Panel title="Ladder" actions={<Link href={whole}>Open the ladder</Link>}>
      <div className={styles["ladder"]} style={{ height }}>
        <Ladder picture={picture} label="Ladder of the call" origin={picture.steps[0]} onOpen={({ seq }) => navigate(`${whole}&at=${seq}`)} />
      </div>
    </Panel>
  );
}

interface EvidencePanelProps {
  evidence: CallWithEvidence["evidence"];
  /** Whether Live shows the run in which it was recorded. */
  current: boolean;
}

/** The entries of the event log that a call rests on, in order; times count from the start of the call. */
function EvidencePanel({ evidence, current }: EvidencePanelProps) {
  const { complete, events } = evidence;
  const origin = originOf(events);
  const moments =
    origin === undefined
      ? []
      : events.map((entry) => ({
          key: entry.seq,
          offset: offsetOf(entry, origin),
          what: <What entry={entry} linked={current} />,
          detail: describe(entry, entry.view.method),
        }));
  const count = `${counted(events.length, "entry", "entries")}, ${complete ? "complete" : "incomplete"}`;
  return (
    <Panel title="Evidence" actions={<span className="quiet">{count}</span>}>
      {!complete && (
        <p>Incomplete: some entries of this call were pushed out of the event log, or there were more than are remembered.</p>
      )}
      <Moments label="Evidence" moments={moments} />
    </Panel>
  );
}

function What({ entry, linked }: { entry: Viewed; linked: boolean }) {
  const { direction } = entry.view;
  return (
    <>
      {linked ? <Link href={traceHref({ at: entry.seq })}>#{entry.seq}</Link> : <span>#{entry.seq}</span>}
      {direction !== null && <DirectionBadge direction={direction} peer={peerOf(entry)} />}
      <Badge title={entry.kind}>{kindOf(entry.kind)}</Badge>
    </>
  );
}
