import { Link } from "wouter";
import { Button } from "~/ui/button";
import { Drawer } from "~/ui/drawer";
import { KeyValues } from "~/ui/key-values";
import { Time } from "~/ui/time";
import { JsonView } from "~/widgets/json-view";
import type { Step } from "~/widgets/ladder/steps";
import { endOf } from "~/widgets/ladder/steps";
import { describe } from "~/words/summary";
import styles from "./ladder-page.module.css";

interface EntryDrawerProps {
  step: Step;
  /** Whether Live shows the run of the entry. */
  current: boolean;
  onOpen: (seq: string) => void;
  onClose: () => void;
}

/** The entry behind a step: its message first, then what else is known of it. */
export function EntryDrawer({ step, current, onOpen, onClose }: EntryDrawerProps) {
  const { entry, seq, title, id, pair, call } = { ...step, call: step.entry.call };
  const message = "message" in entry && typeof entry.message === "object" ? entry.message : null;
  const end = endOf(step);
  return (
    <Drawer title={title} of={seq} onClose={onClose}>
      {message === null ? <p>{describe(entry, null) || title}</p> : <JsonView title="Message" value={message} open={4} />}
      <div className={styles["links"]}>
        {pair !== null && (
          <Button small onClick={() => onOpen(String(pair))}>
            {pair > seq ? "Go to its answer" : "Go to its request"}
          </Button>
        )}
        {current && <Link href={`/live?at=${seq}`}>#{seq} in Live</Link>}
      </div>
      <KeyValues
        items={[
          ["Entry", `#${seq} ${entry.kind}`],
          ["When", <Time key="when" at={step.clock} look="both" />],
          ["Id", id],
          ["What became of it", end],
          ["Call", call],
          ["Exchange", entry.exchange === null ? null : String(entry.exchange)],
          ["Connection", entry.connection],
          ["Stream", entry.stream],
          ["Task", entry.task],
        ]}
      />
      <JsonView title="The whole entry" value={entry} open={0} />
    </Drawer>
  );
}
