import { Link } from "wouter";
import { StatusBadge } from "~/widgets/badges";
import type { Lane } from "./lane";
import styles from "./timeline.module.css";
import { factsOf } from "./words";

interface FactsProps {
  lane: Lane | undefined;
  client: string;
  now: number;
}

const OPENS = { call: "Open the call", task: "Open the task", stream: "Open its entries" };

/** What is known of the lane that has the focus or the pointer, or how to read the picture. */
export function Facts({ lane, client, now }: FactsProps) {
  if (lane === undefined) return <Legend />;
  return (
    <section className={styles["facts"]} aria-label="Facts of the lane">
      <div className={styles["factsHead"]}>
        <h2>
          {lane.kind} {lane.name} <code>{lane.id}</code>
        </h2>
        <StatusBadge status={lane.state} />
        <Link href={lane.href}>{lane.href.startsWith("/live?at=") ? "Open its entry" : OPENS[lane.kind]}</Link>
      </div>
      <dl className={styles["factsList"]}>
        {factsOf(lane, client, now).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Legend() {
  return (
    <section className={styles["facts"]} aria-label="How to read this">
      <p>
        Marks above a bar: emitted. Below it: delivered. A ring above: no socket took it. ✕ is the moment of cancellation, the thin
        part after it lasts until the scope had exited. Hatched: cancelled, timed out or disconnected; crossed: failed; dotted: input
        required; dashed: queued; an arrow: still running.
      </p>
      <p>
        Keys: ↑ ↓ lanes, Enter opens, ← → earlier and later, + − zoom, F fits all, 0 the last minute, Space pauses. Drag over the picture to zoom
        into a range. Point at a lane for its facts.
      </p>
    </section>
  );
}
