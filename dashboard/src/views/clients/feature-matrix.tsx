import { Link } from "wouter";
import type { CallRow, SessionRow } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { exercised, type Exercised, useResumed } from "./features";
import { callsOf } from "./calls-of";
import styles from "./sessions.module.css";

const COLUMNS: readonly PlainColumn<Exercised>[] = [
  { key: "name", head: "Feature", cell: (feature) => feature.name },
  { key: "state", head: "Exercised", cell: (feature) => <State feature={feature} /> },
  { key: "how", head: "How", cell: (feature) => <How feature={feature} /> },
];

function State({ feature: { state, count, declared } }: { feature: Exercised }) {
  return (
    <>
      {state === "exercised" ? <Badge tone="good">✓ {count}×</Badge> : <Badge>{state}</Badge>}
      {declared !== null && <span className={styles["quiet"]}> {declared ? "declared" : "not declared"}</span>}
    </>
  );
}

function How({ feature: { tools, how } }: { feature: Exercised }) {
  return (
    <>
      {tools.length > 0 && "call "}
      {tools.map((tool, index) => (
        <span key={tool}>
          {index > 0 && ", "}
          <Link href={`/server/help#${tool}`}>{tool}</Link>
        </span>
      ))}{" "}
      {how}
    </>
  );
}

/** What the client has exercised, what not yet, and what to call for it. */
export function Matrix({ row, calls }: { row: SessionRow; calls: readonly CallRow[] }) {
  const resumed = useResumed(row.id, row.requests);
  const more = calls.length < callsOf(row);
  const features = exercised({ row, calls, more, resumed });
  const done = features.filter((feature) => feature.state === "exercised").length;
  const possible = features.filter((feature) => feature.state !== "not in this protocol").length;
  return (
    <>
      <PlainTable caption={`Exercised: ${done} of ${possible} features`} columns={COLUMNS} rows={features} rowKey={(feature) => feature.name} />
      <p className={styles["note"]}>
        Tried, not verified.
        {more && ` Arguments and cancellations are those of the newest ${calls.length} of ${callsOf(row)} tool calls.`}
      </p>
    </>
  );
}
