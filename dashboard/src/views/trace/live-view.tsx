import { useCallback, useLayoutEffect, useMemo, useState } from "react";
import { FilterError, type Word, has, read } from "~/protocol/filter";
import { useMcpAddress } from "~/protocol/use-server";
import { useHoldableFeed, useOnly } from "~/trace/use-feed";
import { Button } from "~/ui/button";
import { Page } from "~/ui/page";
import { NothingConnected } from "~/widgets/nothing-connected";
import { Known, KnownContext, KnownStore } from "./known";
import { List, useOpenRows } from "./list";
import { type Line, merge, withFound } from "./merge";
import { RelationsOfRuns } from "./relations";
import { Selected } from "./selected";
import { Toolbar, suggestionsOf } from "./toolbar";
import { useCleared } from "./use-cleared";
import { useHistory } from "./use-history";
import { useLiveUrl } from "./use-live-url";
import { useRows } from "./use-rows";
import { useSearch } from "./use-search";

export default function LiveView() {
  const { snapshot, paused, setPaused, behind } = useHoldableFeed();
  const { items, hello, narrowed, tables } = snapshot;
  const run = hello?.run ?? "";
  const url = useLiveUrl();
  const words = useMemo(() => wordsOf(url.line), [url.line]);
  // the heads of HTTP requests name no client yet, and are a part of the wire
  const client = onlyClient(words);
  useOnly(url.view === "all" ? client : null);
  const history = useHistory(run);
  const merged = useMemo(() => merge(items, history.fetched, narrowed?.after), [items, history.fetched, narrowed]);
  const [kept] = tables.counts;
  const first = oldest(merged, run);
  // the mistakes of the whole log, so that those that repeat are counted
  const whole = url.view === "wire" && PROBLEM_WORDS.some((value) => has(url.line, "problem", [value]));
  const search = useSearch({ run, line: url.line, by: url.view === "wire" ? "exchange" : "entry", oldest: first ?? 0, end: kept?.last ?? 0, whole });
  const all = useMemo(() => withFound(merged, search.entries, run), [merged, search.entries, run]);
  const { fetched } = history;
  // what comes in elsewhere than at the end of the list makes all of it known anew
  const related = useMemo(() => ({ of: new RelationsOfRuns(), fetched, found: search.entries }), [fetched, search.entries]);
  const runs = useMemo(() => related.of.extend(all), [related, all]);
  const known = useMemo(() => new Known(run, runs, tables.sessions), [run, runs, tables.sessions]);
  const [store] = useState(() => new KnownStore(known));
  // after the rows are made, and before they are seen
  useLayoutEffect(() => store.show(known), [store, known]);
  const [lines, cleared] = useCleared(all);
  const [open, toggle] = useOpenRows();
  const { rows, listed } = useRows({ url, words, lines, known, open, repeats: whole });
  // a link to an entry is no reason to go to the newest ones
  const [follow, setFollow] = useState(url.at === "");
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
  const suggestions = useMemo(() => suggestionsOf(tables.sessions), [tables.sessions]);
  const toolbar = (
    <Toolbar url={url} kept={kept} search={search} listed={listed} suggestions={suggestions} cleared={cleared} client={client}>
      <Button aria-pressed={follow} title="Keep the newest in view" onClick={() => setFollow(!follow)}>
        Follow
      </Button>
      <Button aria-pressed={paused} onClick={pause}>
        {paused ? `Resume (${behind} new)` : "Pause"}
      </Button>
      <Button look="quiet" title="Hides what is listed now; the log of the server stays as it is" onClick={cleared.clear}>
        Clear view
      </Button>
    </Toolbar>
  );
  return (
    <KnownContext value={store}>
      <Page title="Live" tools={toolbar} drawer={<Selected url={url} rows={rows} onOpen={show} />}>
        {hello !== null && tables.sessions.length === 0 && all.every(isOwn) ? (
          <Nobody />
        ) : (
          <List rows={rows} search={search} oldest={first} url={url} history={history} open={open} onToggle={toggle} follow={follow} setFollow={setFollow} onOpen={show} />
        )}
      </Page>
    </KnownContext>
  );
}

const PROBLEM_WORDS = ["mistake", "asked", "lost", "limit", "other", "any"];
const NOTHING: readonly Word[] = [];

/** The words of a line; a line that is not understood, which the field says, filters nothing. */
function wordsOf(line: string): readonly Word[] {
  try {
    return read(line);
  } catch (error) {
    if (error instanceof FilterError) return NOTHING;
    throw error;
  }
}

/** The label of the one session or modern client that is wanted; of an earlier run the server has nothing more to send. */
function onlyClient(words: readonly Word[]): string | null {
  const [client, ...others] = words.filter(({ key }) => key === "client");
  const [value, ...values] = client?.values ?? [];
  return client === undefined || client.negated || others.length > 0 || values.length > 0 || value === undefined || !/^[sm]\d+$/.test(value) ? null : value;
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
