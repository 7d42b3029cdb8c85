import { useCallback, useMemo } from "react";
import { useLocation, useParams, useSearch } from "wouter";
import type { HostRow } from "~/protocol/schema";
import { useServer } from "~/protocol/use-server";
import { useFeed } from "~/trace/use-feed";
import { Segmented } from "~/ui/choice";
import { CodeBlock } from "~/ui/code-block";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { SearchField } from "~/ui/search-field";
import { ShownOf } from "~/ui/shown-of";
import { useUrlState } from "~/ui/url-state";
import { SERVER_TABS } from "~/widgets/server-tabs";
import { COLUMNS } from "./host-columns";
import { HostDetail } from "./host-detail";

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
  const tools = (
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
