import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { Link } from "wouter";
import { get, useMcpAddress, useRefresh, useSavedFile } from "~/protocol/client";
import { has, only, quoted, toggled, withOnly } from "~/protocol/filter";
import type { CountsRow, SearchPage } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { type Traced, useTrace } from "~/trace/use-trace";
import { Button } from "~/ui/buttons";
import { Segmented } from "~/ui/fields";
import { Page } from "~/ui/page";
import { Time } from "~/ui/time";
import { useNarrow } from "~/ui/window";
import { NothingConnected } from "~/widgets/connect-client";
import { FilterContext, FilterLine } from "~/widgets/filter-line";
import { counted } from "~/words/text";
import { type Controls, useControls } from "./controls";
import { Selected } from "./drawer";
import { CallLadder, ClientLadder, ladderClient } from "./ladder";
import { List, useOpenRows } from "./list";
import { type Cleared, isCleared, useRows } from "./rows";
import styles from "./trace.module.css";
import { type TraceUrl, useTraceUrl } from "./url";
import { Brush, Legend } from "./waterfall";

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
  const { snapshot, run, all, spans, entries, gaps, loader, paused, setPaused, behind } = traced;
  const [cleared, setCleared] = useState<Cleared | null>(null);
  const [open, toggle] = useOpenRows();
  const lines = view === "all" ? entries : spans;
  const rows = useRows({ trace: loader.trace, lines, gaps, cleared, open, repeats: whole, fold: url.fold, order: url.order });
  const counts = useCounts(traced, filter, by);
  const hidden = useMemo(() => lines.filter((each) => isCleared(each, cleared)).length, [lines, cleared]);
  const grows = useSavedFile() === null;
  // a narrow list has no time line to explain
  const wide = !useNarrow("72rem");
  const controls = useControls();
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
  const toolbar = (
    <Toolbar controls={controls} url={url} traced={traced} counts={counts} listed={lines.length - hidden} client={client} cleared={cleared === null ? null : { at: cleared.at, hidden, show: () => setCleared(null) }}>
      {grows && !ladder && !controls.hidden && (
        <Button aria-pressed={follow} title="Keep the newest in view" onClick={() => setFollow(!follow)}>
          Follow
        </Button>
      )}
      {grows && (paused || !controls.hidden) && (
        <Button aria-pressed={paused} onClick={pause}>
          {paused ? `Resume (${behind} new)` : "Pause"}
        </Button>
      )}
      {grows && !ladder && !controls.hidden && (
        <Button look="quiet" title="Hides what is listed now; the log of the server stays as it is" onClick={clear}>
          Clear view
        </Button>
      )}
      {view === "requests" && wide && <LegendButton />}
    </Toolbar>
  );
  const nobody = snapshot.hello !== null && sessions.length === 0 && all.length === 0 && line === "" && range === null;
  return (
    <FilterContext value={filterBy}>
      <Page title="Trace" tools={toolbar} drawer={<Selected url={url} run={run} rows={rows} onOpen={show} />}>
        {(range !== null || !controls.hidden) && <Brush spans={all} range={range} onRange={url.setRange} />}
        {nobody ? (
          <Nobody />
        ) : ladder ? (
          <ClientLadder controls={controls} client={client} traced={traced} url={url} onOpen={show} />
        ) : (
          <List controls={controls} rows={rows} traced={traced} url={url} open={open} onToggle={toggle} follow={follow && range === null} setFollow={setFollow} onOpen={show} />
        )}
      </Page>
    </FilterContext>
  );
}

const PROBLEMS = ["mistake", "asked", "lost", "limit", "other", "any"];
// each count looks at all of the log
const PACE = 4_000;

/** How much passes in the whole log: the search has counted it, and is asked again only of a log that has grown since. */
function useCounts({ snapshot, run, state, loading: { found } }: Traced, line: string, by: string): { matched: number; total: number } | null {
  const end = snapshot.tables.counts[0]?.last ?? 0;
  useRefresh(["counted"], end, PACE);
  const first = state === "ready" ? found : null;
  const grown = useQuery({
    queryKey: ["counted", run, by, line],
    queryFn: ({ signal }) => get<SearchPage>("/search", { filter: line, by, limit: 0 }, signal),
    enabled: first !== null && first.last < end,
  });
  return grown.data ?? first;
}

function LegendButton() {
  const [open, setOpen] = useState(false);
  return (
    <span className={styles["legend"]}>
      <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        Legend
      </Button>
      {open && (
        <div role="group" aria-label="Legend" className={`${styles["legendBox"]} raised`}>
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

interface ToolbarProps {
  controls: Controls;
  url: TraceUrl;
  traced: Traced;
  /** How many requests or entries are listed, and pass in the whole log. */
  listed: number;
  counts: { matched: number; total: number } | null;
  /** The client that the filter asks for alone. */
  client: string | null;
  /** When the view was cleared and how many entries it hides since; null where nothing is hidden. */
  cleared: { at: number; hidden: number; show: () => void } | null;
  /** The buttons that say how the list moves. */
  children: ReactNode;
}

const VIEWS = [
  { value: "", label: "Requests" },
  { value: "ladder", label: "Ladder" },
  { value: "all", label: "All entries" },
];

/** The filter line, what it found in the whole log, and chips that write into it. */
function Toolbar({ controls, url, traced, listed, counts, client, cleared, children }: ToolbarProps) {
  const kept = traced.snapshot.tables.counts[0];
  return (
    <>
      <FilterLine value={url.line} onChange={url.filter} />
      <span className={`${styles["actions"]} row`}>
        <Segmented label="What is shown" options={VIEWS} value={url.view === "requests" ? "" : url.view} onChange={(view) => url.change({ view })} />
        {controls.button}
        {children}
        {!controls.hidden && <Link href={client === null ? "/export" : `/export?client=${encodeURIComponent(client)}`}>Save as a file</Link>}
      </span>
      {(cleared !== null || !controls.hidden) && (
        <div className={`${styles["groups"]} row`}>
          {!controls.hidden && <Chips url={url} kept={kept} />}
          {!controls.hidden && url.view !== "ladder" && (
            <span className="aside" role="status">
              {listedText({ url, traced, listed, counts, kept })}
            </span>
          )}
          {!controls.hidden && has(url.line, "problem", "mistake") && (
            <span className="aside">
              The judge counts rules and not requests: <Link href="/clients">Clients</Link>.
            </span>
          )}
          {cleared !== null && (
            <span className="aside">
              Cleared at <Time at={cleared.at} />: {counted(cleared.hidden, url.view === "all" ? "entry" : "request", url.view === "all" ? "entries" : "requests")} hidden.{" "}
              <Button small onClick={cleared.show}>
                Show them
              </Button>
            </span>
          )}
        </div>
      )}
    </>
  );
}

/** Over what the list is, and how much of it passes. */
function listedText({ url, traced, listed, counts, kept }: Pick<ToolbarProps, "url" | "traced" | "listed" | "counts"> & { kept: CountsRow | undefined }): string {
  const [one, many] = url.view === "all" ? ["entry", "entries"] : ["request", "requests"];
  const { loading } = traced;
  const shown = `${counted(listed, one, many)} shown`;
  if (loading.error !== null) return `${shown}. The log could not be searched: ${loading.error}`;
  if (url.line === "") return kept === undefined ? shown : `${shown}; the log has ${counted(kept.entries, "entry", "entries")}`;
  if (counts === null || traced.state !== "ready") return `${shown}; searching the log`;
  return `${shown}. ${counts.matched.toLocaleString("en")} of the ${counts.total.toLocaleString("en")} ${many} in the log match${loading.busy === "search" ? "; loading…" : ""}`;
}

const PROBLEM_CHIPS = [
  ["mistake", "client mistakes", "mistakes", "What a client did against the protocol, refused or tolerated"],
  ["asked", "tool errors (expected)", "asked", "Errors that tools gave: simulated, because of their arguments, or of a task that failed"],
  ["lost", "not received", "lost", "Messages that no client received, and calls whose client has gone"],
  ["limit", "server limits", "limits", "Limits, deadlines and failures of this server"],
  ["other", "other problems", "others", "Of tool hosts, and errors that clients answer, as they may"],
] as const;

const GROUPS = ["messages", "http", "calls", "tasks", "streams", "sessions", "hosts", "server"] as const;

function Chips({ url: { line, filter, view, fold, change }, kept }: { url: TraceUrl; kept: CountsRow | undefined }) {
  const chip = (key: string, value: string, name: string, count: number | undefined, title: string) => (
    <Button key={value} small aria-pressed={has(line, key, value)} title={title} onClick={() => filter(toggled(line, key, value))}>
      {name} {count !== undefined && <span className="aside">{count.toLocaleString("en")}</span>}
    </Button>
  );
  const problems = PROBLEM_CHIPS.filter(([value, , field]) => kept?.[field] || has(line, "problem", value));
  return (
    <span role="group" aria-label="Words for the filter line" className={styles["chips"]}>
      <span className="aside">{kept === undefined || problems.length > 0 ? "Requests with" : "No request with a problem"}</span>
      {problems.map(([value, name, field, title]) => chip("problem", value, name, kept?.[field], `${title}. Requests in the whole log.`))}
      {view === "all" && <span className="aside">Entries of</span>}
      {view === "all" && GROUPS.map((group) => chip("group", group, group === "http" ? "HTTP" : group, kept?.[group], "Entries in the whole log"))}
      {view === "all" && (
        <Button small look="quiet" aria-pressed={fold} title="Whether a message was received is told in its own row" onClick={() => change({ deliveries: fold ? "rows" : "" })}>
          Fold deliveries
        </Button>
      )}
    </span>
  );
}
