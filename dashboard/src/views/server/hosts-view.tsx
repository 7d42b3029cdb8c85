import { useCallback } from "react";
import type { HostRow } from "~/protocol/schema";
import { useServer } from "~/protocol/use-server";
import { useFeed } from "~/trace/use-feed";
import { Segmented } from "~/ui/choice";
import { CodeBlock } from "~/ui/code-block";
import { EmptyState } from "~/ui/empty-state";
import { TableView } from "~/ui/table-view";
import { useUrlState } from "~/ui/url-state";
import { SERVER_TABS } from "~/widgets/server-tabs";
import { COLUMNS, FEW_COLUMNS } from "./host-columns";
import { HostDetail } from "./host-detail";

const STATES = [
  { value: "", label: "All" },
  { value: "open", label: "Connected" },
  { value: "closed", label: "Closed" },
];

const wordsOf = (row: HostRow) => `${row.id} ${row.name ?? ""} ${row.version ?? ""} ${row.client} ${row.closed ?? ""} ${row.tools.join(" ")}`;

/** Connections of tool hosts, the newest first; one of them with all that is known of it. */
export default function HostsView() {
  const all = useFeed((snapshot) => snapshot.tables.hosts);
  const [state, setState] = useUrlState("state");
  const passes = useCallback((row: HostRow) => state === "" || (row.state === "closed") === (state === "closed"), [state]);
  return (
    <TableView
      title="Server"
      part="Tool hosts"
      tabs={SERVER_TABS}
      label="Tool hosts"
      path="/server/hosts"
      search="Search tool hosts"
      all={all}
      passes={passes}
      wordsOf={wordsOf}
      columns={COLUMNS}
      fewColumns={FEW_COLUMNS}
      filters={<Segmented label="State" options={STATES} value={state} onChange={setState} />}
      Detail={HostDetail}
      empty={<Nothing known={all.length} />}
    />
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
