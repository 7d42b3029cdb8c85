import { useCallback, useMemo, useState } from "react";
import { useMcpAddress } from "~/api/use-server";
import { useHoldableFeed, useOnly } from "~/feed/use-feed";
import { NothingConnected } from "~/ui/nothing-connected";
import { Page } from "~/ui/page";
import { type WireLine, ExchangesOfRuns } from "./exchanges";
import { type Filtered, filter } from "./filters";
import { Known, KnownContext } from "./known";
import { List, useOpenRows } from "./list";
import { type Line, merge } from "./merge";
import { loadedOf, numbersOf } from "./numbers";
import { type Relations, RelationsOfRuns } from "./relations";
import { Selected } from "./selected";
import { Toolbar } from "./toolbar";
import { useHistory } from "./use-history";
import { useLiveUrl } from "./use-live-url";
import { type LiveRow, rowsOf } from "./wire-rows";

export default function LiveView() {
  const { snapshot, paused, setPaused, behind, clear } = useHoldableFeed();
  const { items, hello, narrowed, tables } = snapshot;
  const run = hello?.run ?? "";
  const url = useLiveUrl();
  // of an earlier run, whose label begins with that run, the server has nothing more to send
  useOnly(url.filters.session === "" || url.filters.session.includes("/") ? null : url.filters.session);
  const history = useHistory(run);
  const lines = useMemo(() => merge(items, history.fetched, narrowed?.after), [items, history.fetched, narrowed]);
  // older history comes in at the other end of the list, so that what is related begins anew with it
  const related = useMemo(() => ({ of: new RelationsOfRuns(), fetched: history.fetched }), [history.fetched]);
  const runs = useMemo(() => related.of.extend(lines), [related, lines]);
  const known = useMemo(() => new Known(run, runs, tables.sessions), [run, runs, tables.sessions]);
  const filtered = useMemo(() => filter(lines, runs, run, url.filters), [lines, runs, run, url.filters]);
  const [kept] = tables.counts;
  const loaded = useMemo(() => loadedOf(lines, run), [lines, run]);
  const numbers = numbersOf(filtered.counts, kept, loaded, url.filters);
  const [open, toggle] = useOpenRows();
  // a link to an entry is no reason to go to the newest ones
  const [follow, setFollow] = useState(url.at === "");
  const wire = useWire(url.view === "wire", lines, runs, filtered);
  const rows = useMemo(() => inOrder(wire ?? filtered.lines.toReversed(), open, url.order), [wire, filtered, open, url.order]);
  const { change } = url;
  const show = useCallback(
    (of: string, seq: number) => {
      setFollow(false);
      change({ at: `${of}-${seq}` }, true);
    },
    [change],
  );
  const pause = () => {
    setPaused(!paused);
    if (paused) setFollow(true);
  };
  const empty = () => {
    clear();
    history.forget();
  };
  const toolbar = (
    <Toolbar url={url} counts={filtered.counts} numbers={numbers} sessions={tables.sessions} narrowed={narrowed !== null} paused={paused} behind={behind} onPause={pause} onEmpty={empty} follow={follow} onFollow={() => setFollow(!follow)} exchanges={wire === null ? null : rows.filter((row) => row.type === "exchange").length} />
  );
  return (
    <KnownContext value={known}>
      <Page title="Live" tools={toolbar} drawer={<Selected url={url} rows={rows} onOpen={show} />}>
        {hello !== null && tables.sessions.length === 0 && lines.every(isOwn) ? (
          <Nobody />
        ) : (
          <List rows={rows} loaded={loaded.entries} kept={kept?.entries} oldest={oldest(lines, run)} url={url} history={history} open={open} onToggle={toggle} follow={follow} setFollow={setFollow} onOpen={show} />
        )}
      </Page>
    </KnownContext>
  );
}

/** The lines of the wire of which an entry passes; null where the view lists entries. */
function useWire(wanted: boolean, lines: readonly Line[], runs: ReadonlyMap<string, Relations>, filtered: Filtered): readonly WireLine[] | null {
  const [exchanges] = useState(() => new ExchangesOfRuns());
  const all = useMemo(() => (wanted ? exchanges.group(lines, runs) : null), [wanted, exchanges, lines, runs]);
  return useMemo(() => {
    if (all === null) return null;
    const passing = new Set(filtered.lines.flatMap((line) => (line.type === "entry" ? [line.entry] : [])));
    return all.filter((line) => line.type === "gap" || line.exchange.entries.some((entry) => passing.has(entry)));
  }, [all, filtered]);
}

const OLDER: LiveRow = { type: "older", key: "older" };

/** The rows of lines that stand oldest first, in the order that is wanted. */
function inOrder(lines: readonly (WireLine | Line)[], open: ReadonlySet<string>, order: "oldest" | "newest"): readonly LiveRow[] {
  return order === "oldest" ? [OLDER, ...rowsOf(lines, open)] : [...rowsOf(lines.toReversed(), open), OLDER];
}

/** What the server does on its own, before anybody comes. */
function isOwn(line: Line): boolean {
  return line.type === "entry" && (line.entry.kind === "server.state" || line.entry.kind === "audit.state");
}

function Nobody() {
  return (
    <NothingConnected address={useMcpAddress()}>
      Every request, message, call and task appears here as it happens. Connect a client and call a tool, such as <code>progress</code>.
    </NothingConnected>
  );
}

/** The oldest entry of the run that the page has, or lies before a gap that it shows; older history ends before it. */
function oldest(lines: readonly Line[], run: string): number | null {
  const first = lines.find((line) => line.run === run && (line.type === "entry" || line.gap.last !== null));
  if (first === undefined) return null;
  return first.type === "entry" ? first.entry.seq : (first.gap.first ?? first.gap.last);
}
