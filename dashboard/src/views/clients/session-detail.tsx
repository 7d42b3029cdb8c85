import { useMemo } from "react";
import { Link } from "wouter";
import type { SessionRow } from "~/protocol/schema";
import { useFeed } from "~/trace/use-feed";
import { Drawer } from "~/ui/drawer";
import { KeyValues } from "~/ui/key-values";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { EraBadge, TransportBadge } from "~/widgets/badges";
import { Capabilities } from "./capabilities";
import { useDeclared } from "./declared";
import { Matrix } from "./feature-matrix";
import { MisuseList } from "./misuse-list";
import { RefusalList } from "./refusal-list";
import { nameOf, SessionState } from "./session-columns";
import styles from "./sessions.module.css";
import { Verdicts } from "./verdicts";

interface SessionDetailProps {
  id: string;
  onClose: () => void;
}

/** Everything that is known of one session, or of one modern client. */
export function SessionDetail({ id, onClose }: SessionDetailProps) {
  const rows = useFeed((snapshot) => snapshot.tables.sessions);
  const connected = useFeed((snapshot) => snapshot.hello !== null);
  const row = rows.find((each) => each.id === id);
  const title = row === undefined ? id : `${id}: ${nameOf(row)}`;
  return (
    <Drawer title={title} of={id} onClose={onClose}>
      {row === undefined ? <Unknown id={id} connected={connected} /> : row.era === null ? <Unattributed row={row} /> : <Known row={row} era={row.era} />}
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

function Unattributed({ row }: { row: SessionRow }) {
  return (
    <>
      <p>These were refused or noted without a known client: bodies that are no JSON, requests that name no open session, and messages that came before a client said its name.</p>
      <Verdicts row={row} />
      <RefusalList row={row} />
      <MisuseList row={row} />
    </>
  );
}

function Known({ row, era }: { row: SessionRow; era: NonNullable<SessionRow["era"]> }) {
  const all = useFeed((snapshot) => snapshot.tables.calls);
  const declared = useDeclared(row);
  const calls = useMemo(() => all.filter((call) => call.session === row.id), [all, row.id]);
  return (
    <>
      <KeyValues
        items={[
          ["Client", `${row.client_name} ${row.client_version}`],
          ["Label", row.label],
          ["Era", <EraBadge key="era" era={era} revision={row.revision} />],
          ["Revision", row.revision],
          ["Over", row.transport === null ? null : <TransportBadge key="transport" transport={row.transport} />],
          ["State", <SessionState key="state" row={row} />],
          ["First message", <Time key="first" at={row.opened_at} look="both" />],
          ["Last message", <Time key="last" at={row.last_at} look="both" />],
          ["Requests", String(row.requests)],
          ["See", <Links key="links" id={row.id} />],
        ]}
      />
      <Capabilities capabilities={row.capabilities} era={era} declared={declared} />
      <Verdicts row={row} />
      <RefusalList row={row} />
      <MisuseList row={row} />
      <Matrix row={declared === null || declared.requests === 0 ? row : { ...row, capabilities: declared.union }} calls={calls} />
      <Counts caption="Methods asked for" head="Method" counts={row.methods} />
      <Counts caption="Tools called" head="Tool" counts={row.tools} />
      <Counts caption="Skills read" head="SKILL.md" counts={row.skills} />
    </>
  );
}

function Links({ id }: { id: string }) {
  const run = useFeed(({ hello }) => hello?.run ?? "");
  return (
    <span className={styles["links"]}>
      <Link href={`/live?session=${id}`}>its log</Link>
      <Link href={`/ladder?client=${id}`}>its ladder</Link>
      {/* another run of the server gave the same label to somebody else */}
      <Link href={`/calls?session=${id}&run=${run}`}>its calls</Link>
      <Link href={`/timeline?session=${id}`}>its timeline</Link>
      <Link href={`/export?client=${id}`}>save as a file</Link>
    </span>
  );
}

interface CountsProps {
  caption: string;
  head: string;
  counts: Readonly<Record<string, number>>;
}

type Line = [name: string, count: number];

/** How often each name came, the most frequent first; nothing when there are none. */
function Counts({ caption, head, counts }: CountsProps) {
  const lines: Line[] = Object.entries(counts).toSorted((a, b) => b[1] - a[1]);
  if (lines.length === 0) return null;
  const columns: readonly PlainColumn<Line>[] = [
    { key: "name", head, cell: name },
    { key: "count", head: "Times", align: "end", cell: ([, count]) => count },
  ];
  return <PlainTable caption={caption} columns={columns} rows={lines} rowKey={([each]) => each} />;
}

const name = ([each]: Line) => <code>{each}</code>;
