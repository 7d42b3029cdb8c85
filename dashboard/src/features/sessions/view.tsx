import { useCallback, useMemo } from "react";
import { useLocation, useParams, useSearch } from "wouter";
import type { SessionRow } from "~/api/schema";
import { TRANSPORTS } from "~/api/transports";
import { NothingYet } from "~/feed/nothing-yet";
import { useFeed } from "~/feed/use-feed";
import { Segmented } from "~/ui/choice";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { SearchField } from "~/ui/search-field";
import { ShownOf } from "~/ui/shown-of";
import { useUrlState } from "~/ui/url-state";
import { COLUMNS, FEW_COLUMNS } from "./columns";
import { SessionDetail } from "./detail";

const ERAS = [
  { value: "", label: "Both eras" },
  { value: "legacy", label: "Legacy" },
  { value: "modern", label: "Modern" },
];

const TRANSPORT_OPTIONS = [{ value: "", label: "All" }, ...TRANSPORTS.map((value) => ({ value, label: value }))];

function matches(row: SessionRow, era: string, transport: string, text: string): boolean {
  const words = `${row.id} ${row.client_name} ${row.client_version} ${row.revision} ${row.closed ?? ""}`.toLowerCase();
  return (era === "" || row.era === era) && (transport === "" || row.transport === transport) && words.includes(text.toLowerCase());
}

/** Sessions of the legacy era and the clients of the modern one, the newest first; one of them with all that it did. */
export default function SessionsView() {
  const all = useFeed((snapshot) => snapshot.tables.sessions);
  const { id } = useParams<{ id?: string }>();
  const [, navigate] = useLocation();
  const search = useSearch();
  const [era, setEra] = useUrlState("era");
  const [transport, setTransport] = useUrlState("transport");
  const [text, setText] = useUrlState("text");
  const rows = useMemo(
    () => all.filter((row) => matches(row, era, transport, text)).toSorted((a, b) => b.opened_at - a.opened_at),
    [all, era, transport, text],
  );
  const go = useCallback(
    (session: string) => navigate(`/sessions${session === "" ? "" : `/${session}`}${search === "" ? "" : `?${search}`}`),
    [navigate, search],
  );
  const close = useCallback(() => go(""), [go]);
  return (
    <Page
      title="Sessions"
      tools={
        <>
          <Segmented label="Era" options={ERAS} value={era} onChange={setEra} />
          <Segmented label="Transport" options={TRANSPORT_OPTIONS} value={transport} onChange={setTransport} />
          <SearchField label="Search sessions" value={text} onChange={setText} />
          <ShownOf shown={rows.length} all={all.length} />
        </>
      }
      drawer={id !== undefined && <SessionDetail id={id} onClose={close} />}
    >
      <DataTable
        label="Sessions and clients"
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
  if (known > 0) return <EmptyState title="No session matches">{known} are hidden by the filters.</EmptyState>;
  return (
    <NothingYet title="No session matches">
      Each session and each client appears here, with what it declares and what it has exercised.
    </NothingYet>
  );
}
