import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { has, only, quoted, toggled, withOnly } from "~/protocol/filter";
import { get } from "~/protocol/client";
import type { SearchPage } from "~/protocol/schema";
import { useMcpAddress } from "~/protocol/use-server";
import { useRefresh } from "~/protocol/use-refresh";
import { useFeed } from "~/trace/use-feed";
import { type Traced, spansOf, useTrace } from "~/trace/use-trace";
import { Button } from "~/ui/button";
import { Page } from "~/ui/page";
import { FilterContext } from "~/widgets/filter-by";
import { NothingConnected } from "~/widgets/nothing-connected";
import { Brush } from "./brush";
import { CallLadder } from "./call-ladder";
import { ClientLadder, ladderClient } from "./client-ladder";
import { Selected } from "./drawer";
import { List, useOpenRows } from "./list";
import { type Cleared, isCleared, useRows } from "./rows";
import { Toolbar } from "./toolbar";
import { type TraceUrl, useTraceUrl } from "./url";
import { Legend } from "./waterfall";
import styles from "./trace.module.css";

/** The log as requests with their times, as the ladder of a client or of one call, or entry by entry. */
export default function TraceView() {
  const url = useTraceUrl();
  return url.call === null ? <LogView url={url} /> : <CallLadder key={url.call} id={url.call} url={url} />;
}

function LogView({ url }: { url: TraceUrl }) {
  const { line, view, range, change } = url;
  const ladder = view === "ladder";
  const sessions = useFeed((snapshot) => snapshot.tables.sessions);
  const client = ladder ? ladderClient(line, sessions) : only(line, "client");
  const filter = ladder && client !== null ? withOnly(line, "client", client) : line;
  // the problems of the whole log, so that those that repeat are counted
  const whole = view === "requests" && PROBLEMS.some((value) => has(line, "problem", value));
  const by = view === "all" ? "entry" : "exchange";
  const traced = useTrace({ filter, by, whole: whole || ladder, range });
  const { snapshot, run, spans, entries, gaps, loader, paused, setPaused, behind } = traced;
  const [cleared, setCleared] = useState<Cleared | null>(null);
  const [open, toggle] = useOpenRows();
  const lines = view === "all" ? entries : spans;
  const rows = useRows({ trace: loader.trace, lines, gaps, cleared, open, repeats: whole, fold: url.fold, order: url.order });
  const counts = useCounts(traced, filter, by);
  const hidden = useMemo(() => lines.filter((each) => isCleared(each, cleared)).length, [lines, cleared]);
  // a link to an entry is no reason to go to the newest ones
  const [follow, setFollow] = useState(url.at === "");
  const show = useCallback(
    (of: string, seq: number) => {
      setFollow(false);
      change({ at: `${of}-${seq}` }, true);
    },
    [change],
  );
  const filterBy = useCallback(
    (key: string, value: string, exclude: boolean) => url.filter(exclude ? `${line} -${key}:${quoted(value)}`.trim() : has(line, key, value) ? line : toggled(line, key, value)),
    [url, line],
  );
  const clear = () => setCleared({ run, seq: snapshot.tables.counts[0]?.last ?? snapshot.trace.runs.at(-1)?.entries.at(-1)?.entry.seq ?? 0, at: Date.now() / 1000 });
  const pause = () => {
    setPaused(!paused);
    if (paused) setFollow(true);
  };
  const all = useMemo(() => (range === null && by === "exchange" ? spans : spansOf(snapshot.trace, null)), [range, by, spans, snapshot.trace]);
  const toolbar = (
    <Toolbar url={url} traced={traced} counts={counts} listed={lines.length - hidden} client={client} cleared={cleared === null ? null : { at: cleared.at, hidden, show: () => setCleared(null) }}>
      {!ladder && (
        <Button aria-pressed={follow} title="Keep the newest in view" onClick={() => setFollow(!follow)}>
          Follow
        </Button>
      )}
      <Button aria-pressed={paused} onClick={pause}>
        {paused ? `Resume (${behind} new)` : "Pause"}
      </Button>
      {!ladder && (
        <Button look="quiet" title="Hides what is listed now; the log of the server stays as it is" onClick={clear}>
          Clear view
        </Button>
      )}
      {view === "requests" && <LegendButton />}
    </Toolbar>
  );
  const nobody = snapshot.hello !== null && sessions.length === 0 && all.length === 0 && line === "" && range === null;
  return (
    <FilterContext value={filterBy}>
      <Page title="Trace" tools={toolbar} drawer={<Selected url={url} run={run} rows={rows} onOpen={show} />}>
        <Brush spans={all} range={range} onRange={url.setRange} />
        {nobody ? (
          <Nobody />
        ) : ladder ? (
          <ClientLadder client={client} traced={traced} url={url} onOpen={show} />
        ) : (
          <List rows={rows} traced={traced} url={url} open={open} onToggle={toggle} follow={follow && range === null} setFollow={setFollow} onOpen={show} />
        )}
      </Page>
    </FilterContext>
  );
}

const PROBLEMS = ["mistake", "asked", "lost", "limit", "other", "any"];
// each count looks at all of the log
const PACE = 4_000;

/** How much passes in the whole log: the search has counted it, and is asked again only of a log that has grown since. */
function useCounts({ snapshot, run, loading: { found } }: Traced, line: string, by: string): { matched: number; total: number } | null {
  const end = snapshot.tables.counts[0]?.last ?? 0;
  useRefresh(["counted"], end, PACE);
  const first = found?.line === line && found.by === by ? found : null;
  const counted = useQuery({
    queryKey: ["counted", run, by, line],
    queryFn: ({ signal }) => get<SearchPage>("/search", { filter: line, by, limit: 0 }, signal),
    enabled: first !== null && first.last < end,
    placeholderData: keepPreviousData,
  });
  return counted.isPlaceholderData ? (first ?? counted.data ?? null) : (counted.data ?? first);
}

function LegendButton() {
  const [open, setOpen] = useState(false);
  return (
    <span className={styles["legend"]}>
      <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        Legend
      </Button>
      {open && (
        <div role="group" aria-label="Legend" className={styles["legendBox"]}>
          <Legend />
        </div>
      )}
    </span>
  );
}

function Nobody() {
  return (
    <NothingConnected address={useMcpAddress()}>
      Every request, message, call and task appears here as it happens. Connect a client and call a tool, such as <code>progress</code>.
    </NothingConnected>
  );
}
