import { useCallback, useMemo } from "react";
import { useMcpAddress } from "~/api/use-server";
import { useHoldableFeed, useOnly } from "~/feed/use-feed";
import { NothingConnected } from "~/ui/nothing-connected";
import { Page } from "~/ui/page";
import { filter } from "./filters";
import { Known, KnownContext } from "./known";
import { List } from "./list";
import { type Line, merge } from "./merge";
import { loadedOf, numbersOf } from "./numbers";
import { RelationsOfRuns } from "./relations";
import { Selected } from "./selected";
import { Toolbar } from "./toolbar";
import { useHistory } from "./use-history";
import { useLiveUrl } from "./use-live-url";

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
  const { change } = url;
  const open = useCallback((of: string, seq: number) => change({ at: `${of}-${seq}` }), [change]);
  const empty = () => {
    clear();
    history.forget();
  };
  const toolbar = (
    <Toolbar url={url} counts={filtered.counts} numbers={numbers} sessions={tables.sessions} narrowed={narrowed !== null} paused={paused} behind={behind} onPause={() => setPaused(!paused)} onEmpty={empty} />
  );
  return (
    <KnownContext value={known}>
      <Page title="Live" tools={toolbar} drawer={<Selected url={url} lines={filtered.lines} onOpen={open} />}>
        {hello !== null && tables.sessions.length === 0 && lines.every(isOwn) ? (
          <Nobody />
        ) : (
          <List filtered={filtered} loaded={loaded.entries} kept={kept?.entries} oldest={oldest(lines, run)} paused={paused} url={url} history={history} onOpen={open} />
        )}
      </Page>
    </KnownContext>
  );
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
