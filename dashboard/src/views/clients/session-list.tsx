import { useCallback } from "react";
import type { SessionRow } from "~/protocol/schema";
import { TRANSPORTS } from "~/protocol/transports";
import { useFeed } from "~/trace/use-feed";
import { Segmented } from "~/ui/choice";
import { EmptyState } from "~/ui/empty-state";
import { TableView } from "~/ui/table-view";
import { useUrlState } from "~/ui/url-state";
import { NothingYet } from "~/widgets/nothing-yet";
import { COLUMNS, FEW_COLUMNS, nameOf } from "./session-columns";
import { SessionDetail } from "./session-detail";

const ERAS = [
  { value: "", label: "Both eras" },
  { value: "legacy", label: "Legacy" },
  { value: "modern", label: "Modern" },
];

const TRANSPORT_OPTIONS = [{ value: "", label: "All" }, ...TRANSPORTS.map((value) => ({ value, label: value }))];

const wordsOf = (row: SessionRow) => `${row.id} ${nameOf(row)} ${row.revision} ${row.closed ?? ""}`;

/** Sessions of the legacy era and the clients of the modern one, the newest first; one of them with all that it did. */
export default function SessionsView() {
  const all = useFeed((snapshot) => snapshot.tables.sessions);
  const [era, setEra] = useUrlState("era");
  const [transport, setTransport] = useUrlState("transport");
  const passes = useCallback((row: SessionRow) => (era === "" || row.era === era) && (transport === "" || row.transport === transport), [era, transport]);
  return (
    <TableView
      title="Sessions"
      label="Sessions and clients"
      path="/sessions"
      search="Search sessions"
      all={all}
      passes={passes}
      wordsOf={wordsOf}
      columns={COLUMNS}
      fewColumns={FEW_COLUMNS}
      filters={
        <>
          <Segmented label="Era" options={ERAS} value={era} onChange={setEra} />
          <Segmented label="Transport" options={TRANSPORT_OPTIONS} value={transport} onChange={setTransport} />
        </>
      }
      Detail={SessionDetail}
      empty={<Nothing known={all.length} />}
    />
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
