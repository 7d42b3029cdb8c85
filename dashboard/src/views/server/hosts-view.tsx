import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { traceHref, useRefresh, useServer } from "~/protocol/client";
import type { HostRow } from "~/protocol/schema";
import type { Viewed } from "~/trace/entry";
import { useFeed } from "~/trace/feed";
import { newestEvents } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { DataTable } from "~/ui/data-table";
import { Drawer } from "~/ui/drawer";
import { SearchField, Segmented } from "~/ui/fields";
import type { Column } from "~/ui/grid-columns";
import { Page } from "~/ui/page";
import { CodeBlock, EmptyState, KeyValues, ShownOf } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { useUrlState } from "~/ui/window";
import { DirectionBadge, StatusBadge } from "~/widgets/badges";
import { EntryTime } from "~/widgets/findings";
import { describe, kindOf } from "~/words/entries";
import { SERVER_TABS } from "./server-view";

const STATES = [
  { value: "", label: "All" },
  { value: "open", label: "Connected" },
  { value: "closed", label: "Closed" },
];

const wordsOf = (row: HostRow) => `${row.id} ${row.name ?? ""} ${row.version ?? ""} ${row.client} ${row.closed ?? ""} ${row.tools.join(" ")}`.toLowerCase();

/** Connections of tool hosts, the newest first; one of them with all that is known of it. The text and the row are in the address. */
export default function HostsView() {
  const { id } = useParams<{ id?: string }>();
  const [, navigate] = useLocation();
  const query = useSearch();
  const all = useFeed((snapshot) => snapshot.tables.hosts);
  const [state, setState] = useUrlState("state");
  const [text, setText] = useUrlState("text");
  const rows = useMemo(() => {
    const passes = (row: HostRow) => (state === "" || (row.state === "closed") === (state === "closed")) && wordsOf(row).includes(text.toLowerCase());
    return all.filter(passes).toSorted((a, b) => b.opened_at - a.opened_at);
  }, [all, state, text]);
  const go = useCallback((to: string) => navigate(`/server/hosts${to}${query === "" ? "" : `?${query}`}`), [navigate, query]);
  const close = useCallback(() => go(""), [go]);
  const tools = all.length > 0 && (
    <>
      <Segmented label="State" options={STATES} value={state} onChange={setState} />
      <SearchField label="Search tool hosts" value={text} onChange={setText} />
      <ShownOf shown={rows.length} all={all.length} />
    </>
  );
  return (
    <Page title="Server" part="Tool hosts" tabs={SERVER_TABS} tools={tools} drawer={id !== undefined && <HostDetail id={id} onClose={close} />}>
      <DataTable
        label="Tool hosts"
        remember="hosts"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.id}
        cameAt={({ opened_at: at }) => at}
        selected={id}
        onSelect={(row) => go(`/${row.id}`)}
        empty={<Nothing known={all.length} />}
      />
    </Page>
  );
}

function Nothing({ known }: { known: number }) {
  const { data } = useServer();
  const waiting = useFeed((snapshot) => snapshot.hello === null);
  if (waiting) return <EmptyState title="Waiting for the server">Its data is not here yet.</EmptyState>;
  if (known > 0) return <EmptyState title="No tool host matches">{known} are hidden by the filters.</EmptyState>;
  if (data !== undefined && !data.tool_hosts.enabled) return <Off />;
  return (
    <EmptyState title="No tool host has connected since the server started">
      <p>A tool host is a process of yours that offers tools through this server. To try one:</p>
      <CodeBlock title="in another terminal, with the secret of this server" code="MCP_PROBE_TOOLHOST_SECRET=… mcp-probe toolhost-demo" />
      <p>The document “Tool hosts” (docs/tool-hosts.md in the source) shows how to write one.</p>
    </EmptyState>
  );
}

function Off() {
  return (
    <EmptyState title="Tool hosts are off">
      <p>
        A tool host is a process of yours that offers tools through this server. Start with <code>--toolhost-secret</code> or its
        variable to let them in:
      </p>
      <CodeBlock title="start of the server" code="MCP_PROBE_TOOLHOST_SECRET=… mcp-probe serve" />
      <p>The document “Tool hosts” (docs/tool-hosts.md in the source) shows how to write one.</p>
    </EmptyState>
  );
}

/** Whether a tool host is there, or why it is not. */
function HostState({ row }: { row: HostRow }) {
  if (row.closed === null) return <StatusBadge status={row.state} />;
  const code = row.code === null ? "" : ` ${row.code}`;
  return <Badge title={`why it ended: ${row.closed}`}>{`closed: ${row.closed}${code}`}</Badge>;
}

/** A number that should be 0. */
function Bad({ count, what }: { count: number; what: string }) {
  return count === 0 ? "0" : <Badge tone="warn">{`${count} ${what}`}</Badge>;
}

const COLUMNS: readonly Column<HostRow>[] = [
  { key: "name", head: "Host", width: { grow: 1, least: 7 }, sortBy: ({ name }) => name, cell: (row) => (row.name === null ? "not registered" : `${row.name} ${row.version ?? ""}`) },
  { key: "state", head: "State", width: { grow: 1, least: 8 }, sortBy: ({ state }) => state, cell: (row) => <HostState row={row} /> },
  { key: "id", head: "Label", width: { fit: [2.5, 5] }, sortBy: ({ id }) => id, cell: (row) => <code>{row.id}</code> },
  { key: "tools", head: "Tools", width: { fit: [2.5, 5] }, align: "end", from: 30, sortBy: ({ tools }) => tools.length, cell: (row) => row.tools.length },
  { key: "opened", head: "Connected", width: { fit: [4, 9] }, from: 40, sortBy: ({ opened_at: at }) => at, cell: (row) => <Time at={row.opened_at} /> },
  { key: "last", head: "Last message", width: "6rem", from: 48, sortBy: ({ last_at: at }) => at, cell: (row) => <Time at={row.last_at} look="ago" /> },
  { key: "running", head: "In flight", width: { fit: [3, 5] }, align: "end", from: 36, sortBy: (row) => row.in_flight, cell: (row) => row.in_flight },
  { key: "dispatched", head: "Dispatched", width: { fit: [3, 6] }, align: "end", from: 56, sortBy: (row) => row.dispatched, cell: (row) => row.dispatched },
  { key: "failed", head: "Failed", width: { fit: [3, 5] }, align: "end", from: 60, sortBy: (row) => row.failed, cell: (row) => row.failed },
  { key: "expired", head: "Timed out", width: { fit: [3, 6] }, align: "end", from: 64, sortBy: (row) => row.expired, cell: (row) => row.expired },
  { key: "late", head: "Late messages", width: { fit: [4, 8] }, align: "end", from: 72, sortBy: (row) => row.late, cell: (row) => <Bad count={row.late} what="late" /> },
  { key: "misuse", head: "Violations", width: { fit: [4, 8] }, align: "end", from: 72, sortBy: (row) => row.misuse, cell: (row) => <Bad count={row.misuse} what="noted" /> },
];

interface HostDetailProps {
  id: string;
  onClose: () => void;
}

/** Everything that is known of one connection of a tool host. */
function HostDetail({ id, onClose }: HostDetailProps) {
  const rows = useFeed((snapshot) => snapshot.tables.hosts);
  const connected = useFeed((snapshot) => snapshot.hello !== null);
  const row = rows.find((each) => each.id === id);
  return (
    <Drawer title={row === undefined ? id : `${id}: ${row.name ?? "not registered"}`} of={id} onClose={onClose}>
      {row === undefined ? <Unknown id={id} connected={connected} /> : <Known row={row} rows={rows} />}
    </Drawer>
  );
}

function Unknown({ id, connected }: { id: string; connected: boolean }) {
  if (!connected) return <p>Waiting for the server.</p>;
  return (
    <p>
      This run of the server knows no <code>{id}</code>. It made room for newer ones, or belongs to an earlier run.
    </p>
  );
}

function Known({ row, rows }: { row: HostRow; rows: readonly HostRow[] }) {
  return (
    <>
      <KeyValues
        items={[
          ["State", <HostState key="state" row={row} />],
          ["Version", row.version],
          ["Library", row.library],
          ["From", row.client],
          ["Connected", <Time key="opened" at={row.opened_at} look="both" />],
          ["Last message", <Time key="last" at={row.last_at} look="both" />],
          ["Replaced", <Replaced key="replaced" label={row.replaced} />],
          ["See", <Links key="links" row={row} />],
        ]}
      />
      <Tools tools={row.tools} />
      <Dispatches row={row} />
      <History row={row} rows={rows} />
      <Recent row={row} />
    </>
  );
}

function Replaced({ label }: { label: string | null }) {
  if (label === null) return "no older connection";
  return (
    <>
      <Link href={`/server/hosts/${label}`}>{label}</Link>, its older connection
    </>
  );
}

function Links({ row }: { row: HostRow }) {
  return (
    <span className="row">
      <Link href={traceHref({ view: "all", filter: `connection:${row.id}` })}>its entries</Link>
      {row.name !== null && <Link href={`/calls?text=${encodeURIComponent(`"${row.name}__`)}`}>calls of its tools</Link>}
    </span>
  );
}

function Tools({ tools }: { tools: readonly string[] }) {
  return (
    <section className="column" aria-label="Tools">
      <h3>Tools</h3>
      {tools.length === 0 && <p>None.</p>}
      <ul className="row">
        {tools.map((tool) => (
          <li key={tool}>
            <code>{tool}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Dispatches({ row }: { row: HostRow }) {
  return (
    <section className="column" aria-label="Dispatches">
      <h3>Dispatches</h3>
      <KeyValues
        items={[
          ["In flight", String(row.in_flight)],
          ["Dispatched", String(row.dispatched)],
          ["Completed", String(row.completed)],
          ["Failed", String(row.failed)],
          ["Cancelled", String(row.cancelled)],
          ["Timed out", String(row.expired)],
          ["Late messages", <Bad key="late" count={row.late} what="dropped" />],
          ["Violations", <Bad key="misuse" count={row.misuse} what="noted" />],
        ]}
      />
    </section>
  );
}

const CONNECTION_COLUMNS: readonly PlainColumn<HostRow>[] = [
  { key: "id", head: "Label", cell: (row) => <Link href={`/server/hosts/${row.id}`}>{row.id}</Link> },
  { key: "opened", head: "Connected", cell: (row) => <Time at={row.opened_at} look="both" /> },
  { key: "state", head: "State", cell: (row) => <HostState row={row} /> },
];

// enough to see that a host comes and goes
const CONNECTIONS = 20;

/** The connections of the same name, the newest first. */
function History({ row, rows }: { row: HostRow; rows: readonly HostRow[] }) {
  const same = useMemo(() => rows.filter((each) => each.name !== null && each.name === row.name).toReversed(), [rows, row.name]);
  if (same.length < 2) return null;
  const caption = `Connections of ${row.name}: ${same.length}${same.length > CONNECTIONS ? `, the newest ${CONNECTIONS}` : ""}`;
  return <PlainTable caption={caption} columns={CONNECTION_COLUMNS} rows={same.slice(0, CONNECTIONS)} rowKey={(each) => each.id} />;
}

// enough to see what it does; all of them are in the live view
const ENTRIES = 50;
// a host that works all the time changes its row with each tick of the feed
const PACE = 1_000;

interface Told {
  entry: Viewed;
  says: string;
}

const ENTRY_COLUMNS: readonly PlainColumn<Told>[] = [
  { key: "at", head: "At", cell: ({ entry }) => <EntryTime entry={entry} /> },
  { key: "kind", head: "Entry", cell: ({ entry }) => <Kind entry={entry} /> },
  { key: "says", head: "Message", cell: ({ entry, says }) => <Says call={entry.call} says={says} /> },
];

/** The newest messages between the server and the host, and what became of dispatches that were cancelled. */
function Recent({ row }: { row: HostRow }) {
  useRefresh(["host entries"], row, PACE);
  const { data, error } = useQuery({
    queryKey: ["host entries", row.id],
    queryFn: ({ signal }) => recent(row.id, signal),
  });
  return (
    <section className="column" aria-label="Recent entries">
      {error !== null && <p>The entries could not be loaded: {error.message}</p>}
      {data !== undefined && data.length === 0 && <p>No recent entries found. Older ones may have been dropped from the log.</p>}
      {data !== undefined && data.length > 0 && <PlainTable caption="Recent entries, newest first" columns={ENTRY_COLUMNS} rows={data} rowKey={({ entry }) => String(entry.seq)} />}
    </section>
  );
}

/** The newest entries of the host's connection, and what each says. */
async function recent(connection: string, signal: AbortSignal): Promise<readonly Told[]> {
  const { events } = await newestEvents({ connection }, ENTRIES, signal);
  return events.map((entry) => ({ entry, says: describe(entry, entry.view.method) }));
}

function Kind({ entry }: { entry: Viewed }) {
  const { direction } = entry.view;
  return (
    <>
      {direction !== null && <DirectionBadge direction={direction} peer="tool host" />} <Badge title={entry.kind}>{kindOf(entry.kind)}</Badge>
    </>
  );
}

function Says({ call, says }: { call: string | null; says: string }) {
  const run = useFeed((snapshot) => snapshot.hello?.run);
  if (call === null) return says;
  return (
    <>
      {says}, for call <Link href={`/calls/${run}.${call}`}>{call}</Link>
    </>
  );
}
