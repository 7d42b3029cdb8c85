import { useMemo } from "react";
import { Link } from "wouter";
import type { SessionRow } from "~/api/schema";
import { useFeed } from "~/feed/use-feed";
import { EraBadge, TransportBadge } from "~/ui/badge";
import { Drawer } from "~/ui/drawer";
import { JsonView } from "~/ui/json-view";
import { KeyValues } from "~/ui/key-values";
import { Time } from "~/ui/time";
import { SessionState } from "./columns";
import { Counts } from "./counts";
import { capabilityLines } from "./features";
import { Matrix } from "./matrix";
import { MisuseList } from "./misuse-list";
import styles from "./sessions.module.css";

interface SessionDetailProps {
  id: string;
  onClose: () => void;
}

/** Everything that is known of one session, or of one modern client. */
export function SessionDetail({ id, onClose }: SessionDetailProps) {
  const rows = useFeed((snapshot) => snapshot.tables.sessions);
  const connected = useFeed((snapshot) => snapshot.hello !== null);
  const row = rows.find((each) => each.id === id);
  const title = row === undefined ? id : `${id}: ${row.client_name} ${row.client_version}`;
  return (
    <Drawer title={title} of={id} onClose={onClose}>
      {row === undefined ? <Unknown id={id} connected={connected} /> : <Known row={row} />}
    </Drawer>
  );
}

function Unknown({ id, connected }: { id: string; connected: boolean }) {
  if (!connected) return <p>Waiting for the server.</p>;
  return (
    <p>
      This run of the server knows no <code>{id}</code>: it was pushed out by newer ones, or belongs to an earlier run.
    </p>
  );
}

function Known({ row }: { row: SessionRow }) {
  const all = useFeed((snapshot) => snapshot.tables.calls);
  const calls = useMemo(() => all.filter((call) => call.session === row.id), [all, row.id]);
  return (
    <>
      <KeyValues
        items={[
          ["Client", `${row.client_name} ${row.client_version}`],
          ["Era", <EraBadge key="era" era={row.era} revision={row.revision} />],
          ["Revision", row.revision],
          ["Over", <TransportBadge key="transport" transport={row.transport} />],
          ["State", <SessionState key="state" row={row} />],
          ["First message", <Time key="first" at={row.opened_at} look="both" />],
          ["Last message", <Time key="last" at={row.last_at} look="both" />],
          ["Requests", String(row.requests)],
          ["See", <Links key="links" id={row.id} />],
        ]}
      />
      <Capabilities capabilities={row.capabilities} />
      <MisuseList session={row.id} count={row.misuse} />
      <Matrix row={row} calls={calls} />
      <Counts caption="Methods asked for" head="Method" counts={row.methods} />
      <Counts caption="Tools called" head="Tool" counts={row.tools} />
    </>
  );
}

function Links({ id }: { id: string }) {
  return (
    <span className={styles["links"]}>
      <Link href={`/live?session=${id}`}>its entries</Link>
      <Link href={`/calls?session=${id}`}>its calls</Link>
      <Link href={`/timeline?session=${id}`}>its timeline</Link>
    </span>
  );
}

function Capabilities({ capabilities }: { capabilities: unknown }) {
  const lines = capabilityLines(capabilities);
  return (
    <section className={styles["part"]} aria-label="Declared capabilities">
      <h3>Declared capabilities</h3>
      {lines.length === 0 ? <p>None: the server may ask this client nothing.</p> : <KeyValues items={lines.map(([name, inside]) => [name, inside === "" ? "declared" : inside])} />}
      <JsonView title="Capabilities as declared" value={capabilities} open={0} />
    </section>
  );
}
