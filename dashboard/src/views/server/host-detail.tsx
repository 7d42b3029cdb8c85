import { useMemo } from "react";
import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import type { HostRow } from "~/protocol/schema";
import { useFeed } from "~/trace/use-feed";
import { Drawer } from "~/ui/drawer";
import { KeyValues } from "~/ui/key-values";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { Bad, HostState } from "./host-columns";
import { Recent } from "./host-recent";
import styles from "./hosts.module.css";

interface HostDetailProps {
  id: string;
  onClose: () => void;
}

/** Everything that is known of one connection of a tool host. */
export function HostDetail({ id, onClose }: HostDetailProps) {
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
    <span className={styles["links"]}>
      <Link href={traceHref({ view: "all", filter: `connection:${row.id}` })}>its entries</Link>
      {row.name !== null && <Link href={`/calls?text=${encodeURIComponent(`"${row.name}__`)}`}>calls of its tools</Link>}
    </span>
  );
}

function Tools({ tools }: { tools: readonly string[] }) {
  return (
    <section className={styles["part"]} aria-label="Tools">
      <h3>Tools</h3>
      {tools.length === 0 && <p>None.</p>}
      <ul className={styles["tools"]}>
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
    <section className={styles["part"]} aria-label="Dispatches">
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

const COLUMNS: readonly PlainColumn<HostRow>[] = [
  { key: "id", head: "Label", cell: (row) => <Link href={`/server/hosts/${row.id}`}>{row.id}</Link> },
  { key: "opened", head: "Connected", cell: (row) => <Time at={row.opened_at} look="both" /> },
  { key: "state", head: "State", cell: (row) => <HostState row={row} /> },
];

// enough to see that a host comes and goes
const SHOWN = 20;

/** The connections of the same name, the newest first. */
function History({ row, rows }: { row: HostRow; rows: readonly HostRow[] }) {
  const same = useMemo(() => rows.filter((each) => each.name !== null && each.name === row.name).toReversed(), [rows, row.name]);
  if (same.length < 2) return null;
  const caption = `Connections of ${row.name}: ${same.length}${same.length > SHOWN ? `, the newest ${SHOWN}` : ""}`;
  return <PlainTable caption={caption} columns={COLUMNS} rows={same.slice(0, SHOWN)} rowKey={(each) => each.id} />;
}
