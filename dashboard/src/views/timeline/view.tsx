import { type KeyboardEvent, useCallback, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { useMcpAddress } from "~/protocol/use-server";
import type { Snapshot } from "~/trace/feed";
import { useHoldableFeed } from "~/trace/use-feed";
import { Button } from "~/ui/button";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { formatMoment } from "~/ui/time-format";
import { useUrlState } from "~/ui/url-state";
import { NothingConnected } from "~/widgets/nothing-connected";
import { clientName } from "~/words/client-name";
import { counted } from "~/words/counted";
import { lastActivity, wholeOf } from "./activity";
import { Facts } from "./facts";
import { linesOf, passing, within } from "./groups";
import type { Lane } from "./lane";
import { LaneTable } from "./lane-table";
import { lanesOf } from "./lanes";
import { Patterns } from "./patterns";
import { Swimlanes } from "./swimlanes";
import styles from "./timeline.module.css";
import { Toolbar } from "./toolbar";
import { type ShownSpan, useSpan } from "./use-span";

function useLanes({ items, tables, hello }: Snapshot): Lane[] {
  const run = hello?.run ?? "";
  return useMemo(() => lanesOf(items, tables, run), [items, tables, run]);
}

/** Keys for the span as a whole; those that move from lane to lane are the picture's own. */
function pressed(event: KeyboardEvent, span: ShownSpan, pause: () => void, follow: () => void, fit: () => void): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest("input, select, button, a") !== null) return false;
  const actions: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => span.pan(-0.25),
    ArrowRight: () => span.pan(0.25),
    "+": () => span.zoom(0.5),
    "=": () => span.zoom(0.5),
    "-": () => span.zoom(2),
    "0": follow,
    f: fit,
    " ": span.live ? pause : follow,
  };
  actions[event.key]?.();
  return Object.hasOwn(actions, event.key);
}

/** Calls, tasks and streams over time, under the client that each belongs to. */
export default function TimelineView() {
  const { snapshot, setPaused } = useHoldableFeed();
  const { sessions } = snapshot.tables;
  const [, navigate] = useLocation();
  const [kind, setKind] = useUrlState("show");
  const [session, setSession] = useUrlState("session");
  const [look, setLook] = useUrlState("as");
  const [selected, setSelected] = useUrlState("lane");
  const [hovered, setHovered] = useState<string | null>(null);
  const lanes = useLanes(snapshot);
  const passed = useMemo(() => passing(lanes, kind, session), [lanes, kind, session]);
  const last = useMemo(() => lastActivity(passed), [passed]);
  const span = useSpan(last);
  const shown = within(passed, span, span.now);
  const fact = lanes.find((lane) => lane.key === (hovered ?? selected));
  const nameOf = useCallback((label: string | null) => clientName(label, sessions), [sessions]);
  const pause = () => {
    setPaused(true);
    span.hold(span);
  };
  const follow = () => {
    setPaused(false);
    span.follow();
  };
  const fit = (wanted: readonly Lane[]) => {
    const whole = wholeOf(wanted, span.now);
    if (whole !== undefined) span.hold(whole);
  };
  const select = (lane: Lane) => {
    setHovered(null);
    if (lane.key !== selected) setSelected(lane.key);
  };
  const open = (lane: Lane) => navigate(lane.href);
  const tools = (
    <Toolbar kind={kind} onKind={setKind} session={session} onSession={setSession} look={look} onLook={setLook} sessions={sessions} span={span} onPause={pause} onFollow={follow} onFit={passed.length > 0 ? () => fit(passed) : undefined} />
  );
  return (
    <Page title="Timeline" tools={tools}>
      <Patterns />
      {span.quietSince !== null && (
        <p className={styles["note"]} role="status">
          Nothing has happened since {formatMoment(span.quietSince)}. This is the time before that moment.
        </p>
      )}
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- keys for all that is inside, each with a button too */}
      <div className={styles["body"]} onKeyDown={(event) => pressed(event, span, pause, follow, () => fit(passed)) && event.preventDefault()}>
        {look === "table" ? (
          <LaneTable lanes={shown} nameOf={nameOf} now={span.now} selected={selected} onOpen={open} />
        ) : (
          <>
            {shown.length === 0 ? <Nothing known={passed.length} hidden={lanes.length - passed.length} onFit={() => fit(passed)} connected={snapshot.hello === null || sessions.length > 0} /> : <Swimlanes lines={linesOf(shown, sessions)} span={span} selected={selected} onSelect={select} onHover={(lane) => setHovered(lane.key)} onOpen={open} onFit={fit} />}
            <Facts lane={fact} client={nameOf(fact?.session ?? null)} now={span.now} />
          </>
        )}
      </div>
    </Page>
  );
}

interface NothingProps {
  /** How many lanes pass the filters, and how many do not. */
  known: number;
  hidden: number;
  connected: boolean;
  onFit: () => void;
}

function Nothing({ known, hidden, connected, onFit }: NothingProps) {
  const address = useMcpAddress();
  if (!connected && known + hidden === 0) {
    return <NothingConnected address={address}>Each call, task and stream becomes a bar here, with its progress and the moment of a cancellation.</NothingConnected>;
  }
  return (
    <EmptyState title="Nothing in this span">
      {known > 0 && (
        <p>
          {counted(known, "lane is", "lanes are")} outside of it. <Button onClick={onFit}>Fit all</Button>
        </p>
      )}
      {known === 0 && hidden > 0 && <p>The filters hide all {hidden} lanes that this page has.</p>}
      <p>
        Call <Link href="/server/help#progress">progress</Link> to see one grow.
      </p>
    </EmptyState>
  );
}
