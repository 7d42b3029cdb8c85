import { Badge } from "~/ui/badge";
import { Button } from "~/ui/button";
import styles from "./live.module.css";
import type { Line } from "./merge";
import type { History } from "./use-history";
import type { Search } from "./use-search";

type Gap = Extract<Line, { type: "gap" }>;

const REASONS: Readonly<Record<Gap["gap"]["reason"], string>> = {
  evicted: "pushed out of the log by newer ones; they cannot be loaded",
  skipped: "the log grew faster than this feed carries",
  passed: "this page keeps only newer ones",
  restarted: "the server was started again; what came between is not known",
};

/** What a gap is, and what can be done about it. */
export function GapText({ line, run, history }: { line: Gap; run: string; history: History }) {
  const { reason, first, last } = line.gap;
  const loadable = (reason === "skipped" || reason === "passed") && line.run === run && first !== null && last !== null;
  return (
    <span className={styles["gap"]}>
      {loadable && (
        <Button
          small
          disabled={history.busy !== null}
          onClick={(event) => {
            event.stopPropagation();
            history.loadGap(line.key, first, last);
          }}
        >
          {history.busy === line.key ? "Loading…" : "Load"}
        </Button>
      )}
      <span title={REASONS[reason]}>
        {first !== null && last !== null && `${last - first + 1} entries, #${first} to #${last}: `}
        {REASONS[reason] ?? reason}
        {(reason === "skipped" || reason === "passed") && line.run !== run && "; lost with that run of the server"}
      </span>
    </span>
  );
}

export function GapBadge({ line }: { line: Gap }) {
  return <Badge tone="warn">gap: {line.gap.reason === "passed" ? "not kept" : line.gap.reason}</Badge>;
}

const ENDS: Readonly<Record<string, string>> = {
  beginning: "This is the beginning of the log.",
  evicted: "Older entries were pushed out of the log.",
  enough: "This page keeps no more than 20,000 older entries; /api/events.ndjson has what the log keeps.",
};

/** The line at the oldest end: older history, as far as there is any; under a filter what else the log has of it. */
export function Older({ history, before, search }: { history: History; before: number; search?: Search }) {
  if (search?.more != null) {
    return (
      <span className={styles["gap"]}>
        <Button small disabled={search.busy} onClick={search.more}>
          {search.busy ? "Searching…" : "Search older"}
        </Button>
      </span>
    );
  }
  if (search?.counts != null) return <span className={styles["gap"]}>Nothing older in the log passes the filter.</span>;
  const end = before <= 1 ? "beginning" : history.end;
  return (
    <span className={styles["gap"]}>
      {end === null ? (
        <Button small disabled={history.busy !== null} onClick={() => history.loadOlder(before)}>
          {history.busy === "older" ? "Loading…" : "Load older"}
        </Button>
      ) : (
        <span>{ENDS[end]}</span>
      )}
      {history.error !== null && <span role="alert">Not loaded: {history.error}</span>}
    </span>
  );
}
