import { useMemo } from "react";
import { Link } from "wouter";
import type { SessionRow } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { clientHref } from "~/trace/findings";
import { useEnded } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { Panel } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { useUrlState } from "~/ui/window";
import { ClientMark, StatusBadge } from "~/widgets/badges";
import { stateIn } from "~/words/states";
import { callsOf, type Client } from "./clients";
import { Capabilities, Matrix, useDeclared } from "./features";
import { NotedList, RefusalList } from "./refusals";
import styles from "./report.module.css";

/** The sessions of a client, and everything that one of them has done: the newest, or that which the address names. */
export function Sessions({ client: { name, rows } }: { client: Client }) {
  const [wanted] = useUrlState("session");
  const row = rows.find(({ id }) => id === wanted) ?? rows[0];
  if (row === undefined) return null;
  return (
    <>
      {row.era !== null && <List client={name} rows={rows} chosen={row.id} />}
      {row.era === null ? <Unattributed row={row} /> : <Session key={row.id} row={row} era={row.era} />}
    </>
  );
}

// a client that opens one for each call has hundreds
const SHOWN = 20;

interface ListProps {
  client: string;
  rows: readonly SessionRow[];
  /** The id of the one that is shown. */
  chosen: string;
}

function List({ client, rows, chosen }: ListProps) {
  const columns = [{ key: "id", head: "Session", cell: linkOf(client, chosen) }, ...COLUMNS];
  const of = rows.length > SHOWN ? `, the newest ${SHOWN} of ${rows.length}` : `: ${rows.length}`;
  return (
    <Panel title={`Sessions${of}`}>
      <PlainTable caption="Sessions" hidden columns={columns} rows={rows.slice(0, SHOWN)} rowKey={({ id }) => id} />
    </Panel>
  );
}

/** The cell that names a session, and leads to it. */
function linkOf(client: string, chosen: string) {
  return ({ id }: SessionRow) => (
    <Link href={`${clientHref(client)}?session=${id}`} aria-current={id === chosen ? "true" : undefined} className={`${styles["session"]} link`}>
      <ClientMark label={id} />
    </Link>
  );
}

const COLUMNS: readonly PlainColumn<SessionRow>[] = [
  { key: "protocol", head: "Protocol", cell: (row) => `${row.revision} over ${row.transport}` },
  { key: "state", head: "State", cell: (row) => <SessionState row={row} /> },
  { key: "opened", head: "First message", cell: (row) => <Time at={row.opened_at} /> },
  { key: "last", head: "Last message", cell: (row) => <Time at={row.last_at} look="ago" /> },
  { key: "requests", head: "Requests", align: "end", cell: (row) => row.requests },
  { key: "calls", head: "Tool calls", align: "end", cell: callsOf },
  { key: "refused", head: "Refused", align: "end", cell: (row) => <Bad count={row.refused} /> },
];

/** Whether a session is open, or why it is not; a client of 2026-07-28 has none. */
function SessionState({ row }: { row: SessionRow }) {
  const ended = useEnded();
  if (row.era === "modern") return <Badge title="2026-07-28 has no sessions">no session</Badge>;
  if (row.closed === null) return <StatusBadge status={stateIn("open", ended)} />;
  return <Badge title={`why it ended: ${row.closed}`}>closed: {row.closed}</Badge>;
}

/** The badge of a count that is better 0. */
function Bad({ count }: { count: number }) {
  return count === 0 ? "0" : <Badge tone="bad">{count}</Badge>;
}

function Unattributed({ row }: { row: SessionRow }) {
  return (
    <>
      <p className="aside">
        Refused or noted without a known client: bodies that are not JSON, requests that name no open session, and messages before a client has said its name.
      </p>
      <Panel title="Refused">
        <RefusalList row={row} />
      </Panel>
      <Panel title="Noted">
        <NotedList row={row} />
      </Panel>
    </>
  );
}

function Session({ row, era }: { row: SessionRow; era: NonNullable<SessionRow["era"]> }) {
  const all = useFeed((snapshot) => snapshot.tables.calls);
  const declared = useDeclared(row);
  const calls = useMemo(() => all.filter((call) => call.session === row.id), [all, row.id]);
  return (
    <>
      <Panel title={`What ${row.id} has exercised`}>
        <Matrix row={declared === null || declared.requests === 0 ? row : { ...row, capabilities: declared.union }} calls={calls} />
      </Panel>
      <Panel title={`What ${row.id} declares`}>
        <Capabilities capabilities={row.capabilities} era={era} declared={declared} />
      </Panel>
      <Panel title={`What the server refused and noted of ${row.id}`}>
        <RefusalList row={row} />
        <NotedList row={row} />
      </Panel>
      <Panel title={`What ${row.id} has asked for`}>
        <div className={styles["counts"]}>
          <Counts caption="Methods" head="Method" counts={row.methods} />
          <Counts caption="Tools" head="Tool" counts={row.tools} />
          <Counts caption="Skills" head="SKILL.md" counts={row.skills} />
        </div>
      </Panel>
    </>
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
    { key: "name", head, width: "long", cell: name },
    { key: "count", head: "Times", align: "end", cell: ([, count]) => count },
  ];
  return <PlainTable caption={caption} columns={columns} rows={lines} rowKey={([each]) => each} />;
}

const name = ([each]: Line) => <code>{each}</code>;
