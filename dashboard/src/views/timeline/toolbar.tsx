import type { SessionRow } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import { Button } from "~/ui/button";
import { Segmented, Select } from "~/ui/choice";
import { formatDuration, formatMoment } from "~/ui/time-format";
import { clientName, clientsOf } from "~/words/client-name";
import type { ShownSpan } from "./use-span";

interface ToolbarProps {
  kind: string;
  onKind: (kind: string) => void;
  session: string;
  onSession: (session: string) => void;
  look: string;
  onLook: (look: string) => void;
  sessions: readonly SessionRow[];
  span: ShownSpan;
  onPause: () => void;
  onFollow: () => void;
  /** Shows all lanes at once; left out where there are none. */
  onFit: (() => void) | undefined;
}

const KINDS = [
  { value: "", label: "All" },
  { value: "call", label: "Calls" },
  { value: "task", label: "Tasks" },
  { value: "stream", label: "Streams" },
];

const LOOKS = [
  { value: "", label: "Picture" },
  { value: "table", label: "Table" },
];

/** What is shown of which span, and how. */
export function Toolbar({ kind, onKind, session, onSession, look, onLook, sessions, span, onPause, onFollow, onFit }: ToolbarProps) {
  const clients = clientsOf(sessions).map(({ id }) => ({ value: id, label: clientName(id, sessions) }));
  return (
    <>
      <Segmented label="Lanes" options={KINDS} value={kind} onChange={onKind} />
      <Select label="Client" options={[{ value: "", label: "all" }, ...clients]} value={session} onChange={onSession} />
      <Segmented label="Shown as" options={LOOKS} value={look} onChange={onLook} />
      <span>
        <Button look="quiet" aria-label="Earlier" title="Earlier (←)" onClick={() => span.pan(-0.25)}>
          ←
        </Button>
        <Button look="quiet" aria-label="Later" title="Later (→)" onClick={() => span.pan(0.25)}>
          →
        </Button>
        <Button look="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick={() => span.zoom(0.5)}>
          +
        </Button>
        <Button look="quiet" aria-label="Zoom out" title="Zoom out (−)" onClick={() => span.zoom(2)}>
          −
        </Button>
      </span>
      <Button disabled={onFit === undefined} title="All calls, tasks and streams that this page has (F)" onClick={onFit}>
        Fit all
      </Button>
      <Button onClick={span.live ? onPause : onFollow}>{span.live ? "Pause" : "Follow"}</Button>
      <SpanBadge span={span} />
    </>
  );
}

function SpanBadge({ span: { live, quietSince, from, until } }: { span: ShownSpan }) {
  const length = formatDuration((until - from) * 1000);
  if (quietSince !== null) return <Badge>the last {length} with activity</Badge>;
  return live ? <Badge tone="good">live, the last {length}</Badge> : <Badge tone="warn">{`paused at ${formatMoment(from)}, ${length}`}</Badge>;
}
