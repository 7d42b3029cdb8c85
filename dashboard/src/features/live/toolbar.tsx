import { Link } from "wouter";
import { clientsOf } from "~/api/client-name";
import type { SessionRow } from "~/api/schema";
import { Button } from "~/ui/button";
import { Segmented, Select } from "~/ui/choice";
import { SearchField } from "~/ui/search-field";
import { GROUPS } from "./facts";
import type { Counts, Filters } from "./filters";
import { type Numbers, isFiltered } from "./numbers";
import { useKnown } from "./known";
import styles from "./live.module.css";
import type { useLiveUrl } from "./use-live-url";

interface ToolbarProps {
  url: ReturnType<typeof useLiveUrl>;
  counts: Counts;
  numbers: Numbers;
  sessions: readonly SessionRow[];
  /** The feed brings one client's entries only. */
  narrowed: boolean;
  paused: boolean;
  /** New items since the pause. */
  behind: number;
  onPause: () => void;
  onEmpty: () => void;
  follow: boolean;
  onFollow: () => void;
  /** How many exchanges are listed; null where the list is of entries. */
  exchanges: number | null;
}

/** The filters, each choice with the number of entries that it is true of, over which entries these are, and the pause. */
export function Toolbar({ url, counts, numbers, sessions, narrowed, paused, behind, onPause, onEmpty, follow, onFollow, exchanges }: ToolbarProps) {
  const { filters, change } = url;
  return (
    <>
      <Sessions filters={filters} counts={numbers.sessions} present={counts.sessions} others={narrowed ? clientsOf(sessions) : NONE} onChange={(session) => change({ session })} />
      <Segmented
        label="Direction"
        options={[
          { value: "", label: "All" },
          { value: "in", label: `→ in${after(numbers.direction?.in)}` },
          { value: "out", label: `← out${after(numbers.direction?.out)}` },
        ]}
        value={filters.direction}
        onChange={(direction) => change({ direction })}
      />
      <Methods filters={filters} counts={numbers.methods} present={counts.methods} onChange={(method) => change({ method })} />
      <SearchField label="Text anywhere in the entry" value={filters.text} onChange={(text) => change({ text })} />
      <span className={styles["actions"]}>
        <Segmented
          label="What is listed"
          options={[
            { value: "wire", label: "Wire" },
            { value: "all", label: "Everything" },
          ]}
          value={url.view}
          onChange={(view) => change({ view: view === "wire" ? "" : view })}
        />
        <Button aria-label={`${url.order} first`} title="Turn the order round" onClick={() => change({ order: url.order === "oldest" ? "newest" : "" })}>
          {url.order === "oldest" ? "↓ oldest first" : "↑ newest first"}
        </Button>
        <Button aria-pressed={follow} title="Keep the newest in view" onClick={onFollow}>
          Follow
        </Button>
        <Button aria-pressed={paused} onClick={onPause}>
          {paused ? `Resume (${behind} new)` : "Pause"}
        </Button>
        <Button look="quiet" title="Empties this list; the log of the server stays as it is" onClick={onEmpty}>
          Clear list
        </Button>
        <Link href={filters.session === "" ? "/export" : `/export?client=${encodeURIComponent(filters.session)}`}>Save as a file</Link>
      </span>
      <Groups url={url} counts={counts} numbers={numbers} exchanges={exchanges} />
      {narrowed && (
        <p className={styles["quiet"]}>
          The server sends the entries of {filters.session} only. The heads of HTTP requests, which name no client yet, are not among them.
        </p>
      )}
    </>
  );
}

const after = (count: number | undefined) => (count === undefined ? "" : ` ${count}`);

interface ChoiceProps {
  filters: Filters;
  /** How many entries each value has; null where that is not counted. */
  counts: ReadonlyMap<string, number> | null;
  /** The values that loaded entries have. */
  present: ReadonlyMap<string, number>;
  onChange: (value: string) => void;
}

const NONE: readonly SessionRow[] = [];

/** `others`: those that may have entries which the feed leaves out, and so are not counted. */
function Sessions({ filters, counts, present, others, onChange }: ChoiceProps & { others: readonly SessionRow[] }) {
  const known = useKnown();
  const name = (key: string) => {
    const slash = key.lastIndexOf("/");
    const client = known.client(slash === -1 ? known.run : key.slice(0, slash), key.slice(slash + 1));
    return client === null ? key : `${key} ${client.label === null ? "" : `${client.label}: `}${client.name} ${client.version}`;
  };
  const values = counted(present, counts);
  for (const { id } of others) if (id !== filters.session) values.set(id, null);
  return <Counted label="Client" all="all" values={values} name={name} value={filters.session} onChange={onChange} />;
}

function Methods({ filters, counts, present, onChange }: ChoiceProps) {
  return <Counted label="Method" all="all" values={counted(present, counts)} name={(method) => method} value={filters.method} onChange={onChange} />;
}

function counted(present: ReadonlyMap<string, number>, counts: ReadonlyMap<string, number> | null): Map<string, number | null> {
  return new Map([...present.keys()].map((value) => [value, counts?.get(value) ?? null]));
}

interface CountedProps {
  label: string;
  all: string;
  /** How many each has; null where that is not known. */
  values: ReadonlyMap<string, number | null>;
  name: (value: string) => string;
  value: string;
  onChange: (value: string) => void;
}

function Counted({ label, all, values, name, value, onChange }: CountedProps) {
  // the chosen one stays in the list when nothing of it is left
  const keys = [...new Set([...values.keys(), ...(value === "" ? [] : [value])])].toSorted(byName);
  const options = keys.map((key) => ({ value: key, label: labelOf(name(key), values.get(key)) }));
  return (
    <span className={styles["select"]}>
      <Select label={label} options={[{ value: "", label: all }, ...options]} value={value} onChange={onChange} />
    </span>
  );
}

const labelOf = (name: string, count: number | null = 0) => (count === null ? name : `${name} (${count})`);

const collator = new Intl.Collator("en", { numeric: true });
const byName = (a: string, b: string) => collator.compare(a, b);

function Groups({ url, counts, numbers, exchanges }: Pick<ToolbarProps, "url" | "counts" | "numbers" | "exchanges">) {
  const { filters, change, clear } = url;
  const { groups, topics, fold } = filters;
  const filtered = groups.length > 0 || isFiltered(filters);
  const toggle = (group: (typeof GROUPS)[number]) => {
    const wanted = groups.includes(group) ? groups.filter((each) => each !== group) : [...groups, group];
    change({ show: wanted.join(",") });
  };
  return (
    <div className={styles["groups"]} role="group" aria-label="Kinds of entries">
      {GROUPS.map((group) => (
        <Button key={group} small aria-pressed={groups.includes(group)} onClick={() => toggle(group)}>
          {group === "http" ? "HTTP" : group} <span className={styles["quiet"]}>{numbers.groups[group]}</span>
        </Button>
      ))}
      {topics.map(([topic, value]) => (
        <Button key={`${topic} ${value}`} small aria-pressed title="Remove this filter" onClick={() => change({ [topic]: "" })}>
          {topic} {value} ✕
        </Button>
      ))}
      <Button
        small
        look="quiet"
        aria-pressed={fold}
        title="Whether a message was delivered is told in its own row"
        onClick={() => change({ deliveries: fold ? "rows" : "" })}
      >
        Fold deliveries
      </Button>
      <span className={styles["quiet"]}>
        {exchanges === null ? `${counts.entries} ${counts.entries === 1 ? "entry" : "entries"} listed` : `${exchanges} ${exchanges === 1 ? "exchange" : "exchanges"} listed`}
        {exchanges === null && counts.folded > 0 && `, ${counts.folded} deliveries folded`}
      </span>
      <span className={styles["quiet"]}>
        Numbers: {numbers.of}.
      </span>
      {filtered && (
        <Button small look="quiet" onClick={clear}>
          Clear filters
        </Button>
      )}
    </div>
  );
}
