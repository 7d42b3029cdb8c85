import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { apiUrl, get, type Query, useOpenFile } from "~/protocol/client";
import type { ExportOverview, Overview } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { FileButton } from "~/ui/buttons";
import { Select } from "~/ui/fields";
import { Page } from "~/ui/page";
import { EmptyState, KeyValues, Panel, Panels, Stack } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { clientOf, clientsOf } from "~/words/text";
import styles from "./trace.module.css";

/** What a file would have in it, before it is saved; `client` and `call` of the address choose a part of the log. */
export default function ExportView() {
  const [params, setParams] = useSearchParams();
  const client = params.get("client") ?? "";
  const call = params.get("call") ?? "";
  const query: Query = call === "" ? { client } : { call };
  const { data, error } = useQuery({
    queryKey: ["export", client, call],
    queryFn: ({ signal }) => get<ExportOverview>("/export", query, signal),
  });
  const choose = (value: string) => setParams(value === "" ? {} : { client: value }, { replace: true });
  return (
    <Page title="Save as a file" tools={<Tools client={call === "" ? client : ""} call={call} onChange={choose} />} scroll>
      {error !== null && (
        <EmptyState title="There is nothing to save">
          <p role="alert">{error.message}</p>
        </EmptyState>
      )}
      {data !== undefined && error === null && <Contents told={data} query={query} />}
    </Page>
  );
}

function Tools(chosen: ClientsProps) {
  return (
    <>
      <Clients {...chosen} />
      <FileButton label="Open a session file" accept=".mcpprobe,.ndjson" onFile={useOpenFile()} />
    </>
  );
}

interface ClientsProps {
  client: string;
  call: string;
  onChange: (client: string) => void;
}

function Clients({ client, call, onChange }: ClientsProps) {
  const sessions = useFeed((snapshot) => snapshot.tables.sessions);
  const known = clientsOf(sessions).map((row) => ({ value: row.id, label: `${row.id} ${clientOf(row)}` }));
  const all = { value: "", label: call === "" ? "all clients" : `call ${call}` };
  return <Select label="Of" options={[all, ...known]} value={client} onChange={onChange} />;
}

const FILES = [
  ["mcpprobe", "Session file", "log, calls and verdicts, for a colleague: mcp-probe open FILE shows it in a dashboard"],
  ["html", "Page", "for a bug report: opens in any browser, has the report and every message"],
  ["har", "HAR", "the HTTP requests and responses, for the developer tools of a browser"],
] as const;

function Contents({ told, query }: { told: ExportOverview; query: Query }) {
  const { contains, judged } = told;
  return (
    <Stack>
      <ul className={styles["files"]}>
        {FILES.map(([suffix, name, purpose]) => (
          <li className="panel quiet" key={suffix}>
            <a href={apiUrl(`/export.${suffix}`, query)} className={styles["name"]} download>
              {name}
            </a>
            {purpose}
          </li>
        ))}
      </ul>
      <Panels>
        <Panel title="Contents">
          <KeyValues
            items={[
              ["Entries", contains.entries.toLocaleString("en")],
              ["From", <Moment key="from" at={contains.first_at} />],
              ["Until", <Moment key="until" at={contains.last_at} />],
              ["Tool calls", String(contains.calls)],
              ["Clients", contains.clients.join(", ")],
              ["Verdicts", judged ? "yes" : "no: this server was started without --judge"],
              ["Missing", contains.gaps.length === 0 ? "nothing" : `${lost(contains)} entries were pushed out of the log`],
            ]}
          />
        </Panel>
        <Panel title="Hidden values">
          <Hidden hidden={contains.hidden} />
        </Panel>
      </Panels>
      <details>
        <summary>Entries by kind</summary>
        <PlainTable caption="Entries by kind" hidden columns={KINDS} rows={Object.entries(contains.kinds)} rowKey={([kind]) => kind} />
      </details>
    </Stack>
  );
}

const KINDS: readonly PlainColumn<[string, number]>[] = [
  { key: "kind", head: "Kind", cell: ([kind]) => <code>{kind}</code> },
  { key: "count", head: "Entries", align: "end", cell: ([, count]) => count.toLocaleString("en") },
];

const lost = ({ gaps }: Overview) => gaps.reduce((sum, gap) => sum + gap.last - gap.first + 1, 0).toLocaleString("en");

function Moment({ at }: { at: number | null }) {
  return at === null ? "–" : <Time at={at} look="both" />;
}

function Hidden({ hidden }: { hidden: Overview["hidden"] }) {
  const names = Object.entries(hidden);
  return (
    <>
      {names.length === 0 ? (
        <p>No value was hidden.</p>
      ) : (
        <ul>
          {names.map(([name, count]) => (
            <li key={name}>
              <code>{name}</code>, {count}×
            </li>
          ))}
        </ul>
      )}
      <p className="aside">The server hides secrets by their names. Everything else is in the file as it was sent, arguments and results too.</p>
    </>
  );
}
