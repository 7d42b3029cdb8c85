import { Link } from "wouter";
import { has, toggled } from "~/protocol/filter";
import type { CountsRow } from "~/protocol/schema";
import type { SessionRow } from "~/protocol/schema";
import { Button } from "~/ui/button";
import { Segmented } from "~/ui/choice";
import { Time } from "~/ui/time";
import type { Known as Suggestions } from "~/widgets/complete";
import { FilterLine } from "~/widgets/filter-line";
import { clientsOf } from "~/words/client-name";
import { counted } from "~/words/counted";
import styles from "./live.module.css";
import { GROUPS } from "./old-links";
import type { Cleared } from "./use-cleared";
import type { LiveUrl } from "./use-live-url";
import type { Search } from "./use-search";

interface ToolbarProps {
  url: LiveUrl;
  /** What the server counts in its log. */
  kept: CountsRow | undefined;
  search: Search;
  /** How many exchanges or entries are listed. */
  listed: number;
  suggestions: Suggestions;
  cleared: Cleared;
  /** The client that the filter asks for alone. */
  client: string | null;
  /** The buttons that say how the list moves. */
  children: React.ReactNode;
}

/** The filter line, what it found in the whole log, and chips that write into it. */
export function Toolbar({ url, kept, search, listed, suggestions, cleared, client, children }: ToolbarProps) {
  const { view, order, change } = url;
  return (
    <>
      <FilterLine value={url.line} onChange={url.filter} known={suggestions} />
      <span className={styles["actions"]}>
        <Segmented
          label="What is listed"
          options={[
            { value: "wire", label: "Wire" },
            { value: "all", label: "Everything" },
          ]}
          value={view}
          onChange={(next) => change({ view: next === "wire" ? "" : next })}
        />
        <Button aria-label={`${order} first`} title="Turn the order round" onClick={() => change({ order: order === "oldest" ? "newest" : "" })}>
          {order === "oldest" ? "↓ oldest first" : "↑ newest first"}
        </Button>
        {children}
        <Link href={client === null ? "/export" : `/export?client=${encodeURIComponent(client)}`}>Save as a file</Link>
      </span>
      <div className={styles["groups"]}>
        <Chips url={url} kept={kept} />
        <span className={styles["quiet"]} role="status">
          {listedText({ url, kept, search, listed })}
        </span>
        {cleared.hidden > 0 && (
          <span className={styles["quiet"]}>
            Cleared at <Time at={cleared.at} />: {counted(cleared.hidden, "entry", "entries")} hidden.{" "}
            <Button small onClick={cleared.show}>
              Show them
            </Button>
          </span>
        )}
      </div>
    </>
  );
}

const number = (count: number) => count.toLocaleString("en");

/** Over what the list is, and how much of it passes. */
function listedText({ url, kept, search, listed }: Pick<ToolbarProps, "url" | "kept" | "search" | "listed">): string {
  const [one, many] = url.view === "wire" ? ["exchange", "exchanges"] : ["entry", "entries"];
  const shown = `${counted(listed, one, many)} listed`;
  if (search.error !== null) return `${shown}; the log could not be searched: ${search.error}`;
  if (url.line === "") return kept === undefined ? shown : `${shown}; the log has ${number(kept.entries)} entries`;
  if (search.counts === null) return `${shown}; the log is being searched`;
  return `${shown}; ${number(search.counts.matched)} of the ${number(search.counts.total)} ${many} in the log pass${search.busy ? ", and are being fetched" : ""}`;
}

const PROBLEMS = [
  ["mistake", "client mistakes", "mistakes", "What a client did wrong, refused or tolerated"],
  ["asked", "errors asked for", "asked", "Errors that tools gave: simulated, because of their arguments, or of a task that failed"],
  ["lost", "lost deliveries", "lost", "Messages that reached nobody, and calls whose client has gone"],
  ["limit", "server limits", "limits", "Limits, deadlines and failures of this server"],
  ["other", "other problems", "others", "Of tool hosts, and errors that clients answer, as they may"],
] as const;

function Chips({ url, kept }: Pick<ToolbarProps, "url" | "kept">) {
  const { line, filter, view, fold, change } = url;
  return (
    <span role="group" aria-label="Words for the filter line" className={styles["chips"]}>
      {PROBLEMS.map(([value, name, field, title]) =>
        value === "other" && !kept?.others && !has(line, "problem", [value]) ? null : (
          <Button key={value} small aria-pressed={has(line, "problem", [value])} title={`${title}. Exchanges in the whole log.`} onClick={() => filter(toggled(line, "problem", [value]))}>
            {name} {kept !== undefined && <span className={styles["quiet"]}>{number(kept[field])}</span>}
          </Button>
        ),
      )}
      {view === "all" &&
        Object.entries(GROUPS).map(([name, kinds]) => (
          <Button key={name} small aria-pressed={has(line, "kind", kinds)} title="Entries in the whole log" onClick={() => filter(toggled(line, "kind", kinds))}>
            {name} {kept !== undefined && <span className={styles["quiet"]}>{number(groupCount(name as keyof typeof GROUPS, kept, fold))}</span>}
          </Button>
        ))}
      {view === "all" && (
        <Button small look="quiet" aria-pressed={fold} title="Whether a message was delivered is told in its own row" onClick={() => change({ deliveries: fold ? "rows" : "" })}>
          Fold deliveries
        </Button>
      )}
    </span>
  );
}

function groupCount(name: keyof typeof GROUPS, kept: CountsRow, fold: boolean): number {
  if (name === "HTTP") return kept.http;
  return name === "messages" && !fold ? kept.messages + kept.deliveries : kept[name];
}

/** What the page can suggest for the words of the filter line. */
export function suggestionsOf(sessions: readonly SessionRow[]): Suggestions {
  const clients = clientsOf(sessions);
  const names = (of: (row: SessionRow) => Readonly<Record<string, number>>) => [...new Set(clients.flatMap((row) => Object.keys(of(row))))].toSorted().map((value) => ({ value }));
  return {
    client: clients.toReversed().map(({ id, label, client_name }) => ({ value: label ?? id, note: label === null ? client_name : `${id} ${client_name}` })),
    tool: names((row) => row.tools),
    method: [...names((row) => row.methods), { value: "notifications/progress" }, { value: "tools/*" }],
  };
}
