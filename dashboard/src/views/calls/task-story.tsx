import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import type { Entry } from "~/protocol/schema";
import type { CallWithEvidence } from "~/trace/call-detail";
import { offsetOf, progressOf } from "~/trace/facts";
import { Badge } from "~/ui/badge";
import { type Moment, Moments } from "~/ui/moments";
import { Panel } from "~/ui/panel";
import { Time } from "~/ui/time";
import { StatusBadge } from "~/widgets/badges";
import { ProgressBar } from "~/widgets/progress-bar";
import { describe, kindOf } from "~/words/summary";
import { beginning, storyOf } from "./tasks";
import styles from "./tasks.module.css";

interface StoryProps {
  evidence: CallWithEvidence["evidence"] | undefined;
  error: Error | null;
  /** The life of the server in which the entries were recorded, and the one that Live shows. */
  run: string | undefined;
  current: string | undefined;
}

/** The statuses of a task with its messages, its progress and its cancellation, in order. */
export function Story({ evidence, error, run, current }: StoryProps) {
  const story = storyOf(evidence?.events ?? []);
  const from = beginning(story);
  const moments = from === undefined ? [] : story.map((entry) => momentOf(entry, from, run === current));
  return (
    <Panel title="Timeline" actions={from && <span className={styles["quiet"]}>from <Time at={from.at} /></span>}>
      {error !== null && <p role="alert">The evidence could not be read: {error.message}</p>}
      {evidence?.complete === false && <p>Incomplete: entries of this task were pushed out of the event log.</p>}
      {evidence !== undefined && moments.length === 0 && <p>No entry of this task is left.</p>}
      <Moments label="Timeline of the task" moments={moments} />
    </Panel>
  );
}

function momentOf(entry: Entry, from: Entry, linked: boolean): Moment {
  return { key: entry.seq, offset: offsetOf(entry, from), what: <What entry={entry} linked={linked} />, detail: <Detail entry={entry} /> };
}

function What({ entry, linked }: { entry: Entry; linked: boolean }) {
  return (
    <>
      {linked ? <Link href={traceHref({ at: entry.seq })}>#{entry.seq}</Link> : <span>#{entry.seq}</span>}
      {entry.kind === "task.changed" ? <StatusBadge status={entry.status} /> : <Badge>{nameOf(entry)}</Badge>}
    </>
  );
}

function nameOf(entry: Entry): string {
  if (progressOf(entry) !== null) return "progress";
  return entry.kind === "message.received" ? (entry.method ?? kindOf(entry.kind)) : kindOf(entry.kind);
}

/** Why a report of progress was not made a message of a stream; null for one that was. */
function unsent(entry: Entry): string | null {
  if (entry.kind === "message.dropped") return `not sent: ${entry.why}`;
  return entry.kind === "call.progressed" ? "not sent: the client gave no token" : null;
}

function Detail({ entry }: { entry: Entry }) {
  const progress = progressOf(entry);
  if (entry.kind === "task.changed") return entry.message ?? "";
  if (progress === null) return describe(entry, null);
  return (
    <span className={styles["tick"]}>
      <ProgressBar label="progress" done={progress.progress} total={progress.total} status="ended" />
      {progress.message}
      <span className={styles["quiet"]}>{unsent(entry)}</span>
    </span>
  );
}
