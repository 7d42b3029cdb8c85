import { useCallback, useMemo } from "react";
import { useLocation, useParams, useSearch } from "wouter";
import type { HostRow } from "~/api/schema";
import { useServer } from "~/api/use-server";
import { useFeed } from "~/feed/use-feed";
import { Segmented } from "~/ui/choice";
import { CodeBlock } from "~/ui/code-block";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { SearchField } from "~/ui/search-field";
import { ShownOf } from "~/ui/shown-of";
import { useUrlState } from "~/ui/url-state";
import { COLUMNS, FEW_COLUMNS } from "./columns";
import { HostDetail } from "./detail";

const STATES = [
  { value: "", label: "All" },
  { value: "open", label: "Connected" },
  { value: "closed", label: "Closed" },
];

function matches(row: HostRow, state: string, text: string): boolean {
  const words = `${row.id} ${row.name ?? ""} ${row.version ?? ""} ${row.client} ${row.closed ?? ""} ${row.tools.join(" ")}`.toLowerCase();
  return (state === "" || (row.state === "closed") === (state === "closed")) && words.includes(text.toLowerCase());
}

/** Connections of tool hosts, the newest first; one of them with all that is known of it. */
export default function HostsView() {
  const all = useFeed((snapshot) => snapshot.tables.hosts);
  const { id } = useParams<{ id?: string }>();
  const [, navigate] = useLocation();
  const search = useSearch();
  const [state, setState] = useUrlState("state");
  const [text, setText] = useUrlState("text");
  const rows = useMemo(
    () => all.filter((row) => matches(row, state, text)).toSorted((a, b) => b.opened_at - a.opened_at),
    [all, state, text],
  );
  const go = useCallback(
    (host: string) => navigate(`/hosts${host === "" ? "" : `/${host}`}${search === "" ? "" : `?${search}`}`),
    [navigate, search],
  );
  const close = useCallback(() => go(""), [go]);
  return (
    <Page
      title="Tool hosts"
      tools={
        <>
          <Segmented label="State" options={STATES} value={state} onChange={setState} />
          <SearchField label="Search tool hosts" value={text} onChange={setText} />
          <ShownOf shown={rows.length} all={all.length} />
        </>
      }
      drawer={id !== undefined && <HostDetail id={id} onClose={close} />}
    >
      <DataTable
        label="Tool hosts"
        columns={id === undefined ? COLUMNS : FEW_COLUMNS}
        rows={rows}
        rowKey={(row) => row.id}
        selected={id}
        onSelect={(row) => go(row.id)}
        empty={<Nothing known={all.length} />}
      />
    </Page>
  );
}

function Nothing({ known }: { known: number }) {
  const { data } = useServer();
  const waiting = useFeed((snapshot) => snapshot.hello === null);
  if (waiting) return <EmptyState title="Waiting for the server">What it knows is not here yet.</EmptyState>;
  if (known > 0) return <EmptyState title="No tool host matches">{known} are hidden by the filters.</EmptyState>;
  if (data !== undefined && !data.tool_hosts.enabled) return <Off />;
  return (
    <EmptyState title="No tool host has connected since the server started">
      <p>A tool host is a process of yours that offers tools through this server. To try one:</p>
      <CodeBlock title="in another terminal, with the secret of this server" code="MCP_PROBE_TOOLHOST_SECRET=… mcp-probe toolhost-demo" />
      <p>How to write one is in docs/tool-hosts.md of the project.</p>
    </EmptyState>
  );
}

function Off() {
  return (
    <EmptyState title="Tool hosts are off">
      <p>
        A tool host is a process of yours that offers tools through this server. Start with <code>--toolhost-secret</code>, or with
        its variable, to let them in:
      </p>
      <CodeBlock title="start of the server" code="MCP_PROBE_TOOLHOST_SECRET=… mcp-probe serve" />
      <p>What they are and how to write one is in docs/tool-hosts.md of the project.</p>
    </EmptyState>
  );
}
