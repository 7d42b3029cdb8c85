import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { get, ROOT, useRefresh, useServer } from "~/protocol/client";
import type { Server } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { Badge } from "~/ui/badge";
import { CopyButton } from "~/ui/buttons";
import { Page, type Tab } from "~/ui/page";
import { EmptyState, KeyValues, Panel, Panels, Skeleton } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { StatusBadge } from "~/widgets/badges";
import { counted } from "~/words/text";
import styles from "./server.module.css";

/** The parts of the view of the server. */
export const SERVER_TABS: readonly Tab[] = [
  ["/server", "Overview"],
  ["/server/streams", "Streams"],
  ["/server/limits", "Limits"],
  ["/server/hosts", "Tool hosts"],
  ["/server/help", "Help"],
];

/** The server itself: what it is, what it serves, and what it has recorded. */
export default function ServerView() {
  return <ServerPage part="Overview">{(server) => <Overview server={server} />}</ServerPage>;
}

function Overview({ server }: { server: Server }) {
  return (
    <Panels>
      <Panel title="Server">
        <KeyValues
          items={[
            ["State", <StatusBadge key="state" status={server.state} />],
            ["Version", `${server.name} ${server.version}`],
            ["Run", <code key="run">{server.run}</code>],
            ["Started", <Time key="started" at={server.started_at} look="both" />],
            ["Uptime", formatDuration(server.uptime_s * 1000)],
          ]}
        />
      </Panel>
      <Panel title="Protocol">
        <KeyValues
          items={[
            ["MCP address", <Address key="mcp" server={server} />],
            ["Revisions", <Revisions key="revisions" revisions={server.revisions} />],
            ["Tool hosts", <ToolHosts key="hosts" {...server.tool_hosts} />],
            ["Toolsets", <Toolsets key="toolsets" toolsets={server.toolsets} byUrl={server.mcp !== null} />],
          ]}
        />
      </Panel>
      <Panel title="Observation">
        <KeyValues
          items={[
            ["Event log", `${counted(server.log.entries, "entry", "entries")}, ${server.log.first} to ${server.log.last}`],
            ["Its size", `${server.log.bytes.toLocaleString("en")} bytes`],
            ["Audit", <Audit key="audit" audit={server.audit} />],
            ["Dashboards open", String(server.feed.length)],
          ]}
        />
        {server.feed.length > 0 && <Readers readers={server.feed} />}
      </Panel>
      {IN_ROOM.test(server.mcp ?? "") && <RoomPanel />}
    </Panels>
  );
}

const IN_ROOM = /\/r\/[\w-]{8}\/[\w-]{40}\/mcp$/;
const ROOM_MS = 30_000;

interface Room {
  expires_at: number;
  is_owner: boolean;
}

/** The room that this server is: when it ends, its page, and another one. */
function RoomPanel() {
  const { data: room } = useQuery({ queryKey: ["room"], queryFn: ({ signal }) => get<Room>("/room", {}, signal), refetchInterval: ROOM_MS });
  if (room === undefined) return null;
  const own: [string, ReactNode] = ["This one", <a key="page" href={`${ROOT}/`}>all addresses, and the button that ends it</a>];
  return (
    <Panel title="Room">
      <KeyValues
        items={[
          ["Ends without use", <Time key="ends" at={room.expires_at} />],
          ...(room.is_owner ? [own] : []),
          ["Another one", <a key="new" href={`${ROOT}/../../../new`}>make another room</a>],
        ]}
      />
    </Panel>
  );
}

function Address({ server: { mcp: address, file } }: { server: Server }) {
  if (file) return "none: this is a file";
  if (address === null) return "none: this server speaks MCP on its standard input and output";
  return (
    <>
      <code>{address}</code> <CopyButton text={address} />
    </>
  );
}

function ToolHosts({ enabled, connected }: Server["tool_hosts"]) {
  if (!enabled) {
    return (
      <>
        <Link href="/server/hosts">off</Link>: start with <code>--toolhost-secret</code>
      </>
    );
  }
  return (
    <Link href="/server/hosts">
      on, {connected} connected
    </Link>
  );
}

function Revisions({ revisions }: { revisions: readonly string[] }) {
  return revisions.map((revision, index) => (
    <span key={revision}>
      <span className={styles["number"]}>{index === revisions.length - 1 ? revision : `${revision},`}</span>{" "}
    </span>
  ));
}

/** What is served, and what else clients can have: by their URL (`byUrl`), or of a server that is started with it. */
function Toolsets({ toolsets, byUrl }: { toolsets: Server["toolsets"]; byUrl: boolean }) {
  const parts = [
    ["Served", toolsets.filter((set) => set.default)],
    [byUrl ? "At /mcp?tools=NAME" : "When started with --tools NAME", toolsets.filter((set) => !set.default)],
  ] as const;
  return parts.map(
    ([when, sets]) =>
      sets.length > 0 && (
        <p key={when}>
          {when}: {sets.map(({ name, tools }) => `${name} (${counted(tools.length, "tool")})`).join(", ")}
        </p>
      ),
  );
}

function Audit({ audit }: { audit: Server["audit"] }) {
  const where = audit.store === "memory" ? "in memory only" : "in a file";
  return (
    <>
      <StatusBadge status={audit.state} /> {where}
      {audit.why !== null && <p>{audit.why}</p>}
      {audit.since !== null && (
        <p>
          since <Time at={audit.since} look="both" />
        </p>
      )}
      {audit.lost > 0 && <p>{audit.lost} rows lost</p>}
    </>
  );
}

const READER_COLUMNS: readonly PlainColumn<Server["feed"][number]>[] = [
  { key: "since", head: "Since", cell: (reader) => <Time at={reader.since} /> },
  { key: "position", head: "Sent up to entry", align: "end", cell: (reader) => reader.position },
  { key: "behind", head: "Still to send", align: "end", cell: (reader) => reader.behind },
];

function Readers({ readers }: { readers: Server["feed"] }) {
  return (
    <div className={styles["readers"]}>
      <PlainTable
        caption="Open dashboards"
        columns={READER_COLUMNS}
        rows={readers}
        rowKey={(reader) => `${reader.since}-${reader.position}`}
      />
    </div>
  );
}

const EVERY_MS = 2_000;

interface ServerPageProps {
  part: string;
  children: (server: Server) => ReactNode;
}

/** A part of the view of the server, which is asked again every two seconds. */
export function ServerPage({ part, children }: ServerPageProps) {
  const { data, error, dataUpdatedAt } = useServer(EVERY_MS);
  // the first answer may be older than the feed of this page, which it would not count
  useRefresh(["server"], useFeed(({ hello }) => hello === null), 0);
  const old = error !== null && data !== undefined;
  return (
    <Page
      title="Server"
      part={part}
      tabs={SERVER_TABS}
      scroll
      tools={old && <Badge tone="warn">disconnected; this is as of {new Date(dataUpdatedAt).toLocaleTimeString()}</Badge>}
    >
      {data !== undefined && children(data)}
      {data === undefined && error === null && <Skeleton label="Loading" />}
      {data === undefined && error !== null && (
        <EmptyState title="The server does not answer">
          <p>{error.message}. Trying again every 2 seconds.</p>
        </EmptyState>
      )}
    </Page>
  );
}
