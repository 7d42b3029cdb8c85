import type { ReactNode } from "react";
import { Link } from "wouter";
import { has, toggled } from "~/protocol/filter";
import type { CountsRow } from "~/protocol/schema";
import type { Traced } from "~/trace/use-trace";
import { Button } from "~/ui/button";
import { Segmented } from "~/ui/choice";
import { Time } from "~/ui/time";
import { FilterLine } from "~/widgets/filter-line";
import { counted } from "~/words/counted";
import styles from "./trace.module.css";
import type { TraceUrl } from "./url";

interface ToolbarProps {
  url: TraceUrl;
  traced: Traced;
  /** How many requests or entries are listed, and pass in the whole log. */
  listed: number;
  counts: { matched: number; total: number } | null;
  /** The client that the filter asks for alone. */
  client: string | null;
  /** When the view was cleared and how many entries it hides since; null where nothing is hidden. */
  cleared: { at: number; hidden: number; show: () => void } | null;
  /** The buttons that say how the list moves. */
  children: ReactNode;
}

const VIEWS = [
  { value: "", label: "Requests" },
  { value: "ladder", label: "Ladder" },
  { value: "all", label: "All entries" },
];

/** The filter line, what it found in the whole log, and chips that write into it. */
export function Toolbar({ url, traced, listed, counts, client, cleared, children }: ToolbarProps) {
  const kept = traced.snapshot.tables.counts[0];
  return (
    <>
      <FilterLine value={url.line} onChange={url.filter} />
      <span className={styles["actions"]}>
        <Segmented label="What is shown" options={VIEWS} value={url.view === "requests" ? "" : url.view} onChange={(view) => url.change({ view })} />
        {children}
        <Link href={client === null ? "/export" : `/export?client=${encodeURIComponent(client)}`}>Save as a file</Link>
      </span>
      <div className={styles["groups"]}>
        <Chips url={url} kept={kept} />
        {url.view !== "ladder" && (
          <span className={styles["quiet"]} role="status">
            {listedText({ url, traced, listed, counts, kept })}
          </span>
        )}
        {cleared !== null && (
          <span className={styles["quiet"]}>
            Cleared at <Time at={cleared.at} />: {counted(cleared.hidden, url.view === "all" ? "entry" : "request", url.view === "all" ? "entries" : "requests")} hidden.{" "}
            <Button small onClick={cleared.show}>
              Show them
            </Button>
          </span>
        )}
      </div>
    </>
  );
}

/** Over what the list is, and how much of it passes. */
function listedText({ url, traced, listed, counts, kept }: Pick<ToolbarProps, "url" | "traced" | "listed" | "counts"> & { kept: CountsRow | undefined }): string {
  const [one, many] = url.view === "all" ? ["entry", "entries"] : ["request", "requests"];
  const { loading } = traced;
  const shown = `${counted(listed, one, many)} shown`;
  if (loading.error !== null) return `${shown}. The log could not be searched: ${loading.error}`;
  if (url.line === "") return kept === undefined ? shown : `${shown}; the log has ${counted(kept.entries, "entry", "entries")}`;
  if (counts === null) return `${shown}; searching the log`;
  return `${shown}. ${counts.matched.toLocaleString("en")} of the ${counts.total.toLocaleString("en")} ${many} in the log match${loading.busy === "search" ? "; loading…" : ""}`;
}

const PROBLEMS = [
  ["mistake", "violations", "mistakes", "What a client did against the protocol, refused or tolerated"],
  ["asked", "tool errors (expected)", "asked", "Errors that tools gave: simulated, because of their arguments, or of a task that failed"],
  ["lost", "not received", "lost", "Messages that no client received, and calls whose client has gone"],
  ["limit", "server limits", "limits", "Limits, deadlines and failures of this server"],
  ["other", "other problems", "others", "Of tool hosts, and errors that clients answer, as they may"],
] as const;

const GROUPS = ["messages", "http", "calls", "tasks", "streams", "sessions", "hosts", "server"] as const;

function Chips({ url: { line, filter, view, fold, change }, kept }: { url: TraceUrl; kept: CountsRow | undefined }) {
  const chip = (key: string, value: string, name: string, count: number | undefined, title: string) => (
    <Button key={value} small aria-pressed={has(line, key, value)} title={title} onClick={() => filter(toggled(line, key, value))}>
      {name} {count !== undefined && <span className={styles["quiet"]}>{count.toLocaleString("en")}</span>}
    </Button>
  );
  return (
    <span role="group" aria-label="Words for the filter line" className={styles["chips"]}>
      {PROBLEMS.map(([value, name, field, title]) => (value === "other" && !kept?.others && !has(line, "problem", value) ? null : chip("problem", value, name, kept?.[field], `${title}. Requests in the whole log.`)))}
      {view === "all" && GROUPS.map((group) => chip("group", group, group === "http" ? "HTTP" : group, kept?.[group], "Entries in the whole log"))}
      {view === "all" && (
        <Button small look="quiet" aria-pressed={fold} title="Whether a message was received is told in its own row" onClick={() => change({ deliveries: fold ? "rows" : "" })}>
          Fold deliveries
        </Button>
      )}
    </span>
  );
}
