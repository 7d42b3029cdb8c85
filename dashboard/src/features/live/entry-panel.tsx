import { type ReactNode, useState } from "react";
import { DASHBOARD } from "~/api/address";
import { apiUrl } from "~/api/client";
import { directionOf } from "~/api/evidence";
import type { Entry } from "~/api/schema";
import { EntryMarks } from "~/judged/finding-mark";
import { Button } from "~/ui/button";
import { CopyButton } from "~/ui/copy-button";
import { Drawer } from "~/ui/drawer";
import { type Scalar, writeJson } from "~/ui/json";
import { JsonView } from "~/ui/json-view";
import { Fact, Facts, KeyValues } from "~/ui/key-values";
import { Time } from "~/ui/time";
import { TypedValue } from "~/ui/typed-value";
import { Era, Line, Way, Who } from "./cells";
import { useKnown } from "./known";
import styles from "./live.module.css";
import { Related } from "./related";
import type { useLiveUrl } from "./use-live-url";

interface EntryPanelProps {
  run: string;
  entry: Entry;
  url: ReturnType<typeof useLiveUrl>;
  /** The neighbours in the list, where there are any. */
  newer: (() => void) | null;
  older: (() => void) | null;
  onClose: () => void;
}

/** Everything about one entry. */
export function EntryPanel({ run, entry, url, newer, older, onClose }: EntryPanelProps) {
  const relations = useKnown().relations(run);
  const method = relations.methodOf(entry);
  const actions = (
    <>
      <Button small disabled={newer === null} onClick={() => newer?.()}>
        ↑ Newer
      </Button>
      <Button small disabled={older === null} onClick={() => older?.()}>
        ↓ Older
      </Button>
      <CopyButton label="Copy link" text={() => `${location.origin}${DASHBOARD}/live?at=${run}-${entry.seq}`} />
      <CopyButton label="Copy JSON" text={() => writeJson(entry, 2)} />
    </>
  );
  return (
    <Drawer title={`#${entry.seq} ${method ?? entry.kind}`} of={`${run}-${entry.seq}`} onClose={onClose} actions={actions}>
      <p className={styles["summary"]}>
        <EntryMarks run={run} seq={entry.seq} />
        <Line run={run} entry={entry} />
      </p>
      <KeyValues items={[...place(run, entry), ...facts(entry)]} />
      <Related run={run} entry={entry} url={url} />
      <Values entry={entry} />
      <Whole key={entry.seq} run={run} entry={entry} />
    </Drawer>
  );
}

type Named = readonly [string, ReactNode];

function place(run: string, entry: Entry): readonly Named[] {
  return [
    ["kind", <code key="kind">{entry.kind}</code>],
    ["time", <Moment key="time" entry={entry} />],
    ["run", run],
    ["belongs to", (entry.session ?? entry.label) === null ? null : <Who key="who" run={run} entry={entry} />],
    ["era, revision", entry.session === null ? null : <Era key="era" run={run} entry={entry} />],
    ["direction", directionOf(entry) === null ? null : <Way key="direction" run={run} entry={entry} />],
  ];
}

function Moment({ entry }: { entry: Entry }) {
  return (
    <>
      <Time at={entry.at} look="both" /> <span className={styles["quiet"]}>monotonic {entry.mono.toFixed(6)} s</span>
    </>
  );
}

// what `place` and the rest of the panel show already
const ELSEWHERE = new Set(["seq", "kind", "at", "mono", "cause"]);

function isScalar(value: unknown): value is Scalar {
  return value === null || typeof value !== "object";
}

/** All its members of one word, under the names that the contract gives them. */
function facts(entry: Entry): readonly Named[] {
  return Object.entries(entry).flatMap(([name, value]: [string, unknown]): readonly Named[] =>
    ELSEWHERE.has(name) || !isScalar(value) ? [] : [[name, valueOf(name, value)]],
  );
}

const TYPED = new Set(["id", "request_id", "progress_token"]);

function valueOf(name: string, value: Scalar): ReactNode {
  if (value === null) return null;
  return TYPED.has(name) ? <TypedValue value={value} /> : String(value);
}

/** Its members that are larger: the message, the headers, the capabilities. */
function Values({ entry }: { entry: Entry }) {
  return Object.entries(entry).map(([name, value]: [string, unknown]) => {
    if (isScalar(value)) return null;
    return name === "headers" ? <Headers key={name} pairs={value} /> : <JsonView key={name} title={name} value={value} open={3} />;
  });
}

function Headers({ pairs }: { pairs: unknown }) {
  const headers = pairs as readonly (readonly [string, string])[];
  return (
    <section>
      <h3>Headers, as received</h3>
      <Facts>
        {headers.map(([name, value], index) => (
          // a header may come twice
          // oxlint-disable-next-line react/no-array-index-key
          <Fact key={index} name={name}>
            {value}
          </Fact>
        ))}
      </Facts>
    </section>
  );
}

function Whole({ run, entry }: { run: string; entry: Entry }) {
  const [open, setOpen] = useState(false);
  const current = useKnown().run === run;
  return (
    <>
      <p className={styles["links"]}>
        <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide the whole entry" : "Show the whole entry"}
        </Button>
        {current && <a href={apiUrl(`/events/${entry.seq}`)}>as the API gives it</a>}
      </p>
      {open && <JsonView title="Whole entry" value={entry} open={3} />}
    </>
  );
}
