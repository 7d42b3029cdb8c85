import { Link } from "wouter";
import { useCallDetail } from "~/trace/call-detail";
import { useFeed } from "~/trace/use-feed";
import { EmptyState } from "~/ui/empty-state";
import { usePicture } from "~/widgets/ladder/picture";
import { clientOf } from "~/words/client-name";
import { conclusionOf } from "~/words/conclusion";
import { LadderPage } from "./ladder-page";

const NONE = [] as const;

/** The messages of one call, also of an earlier run. */
export function CallLadder({ id }: { id: string }) {
  const row = useFeed((snapshot) => snapshot.tables.calls.find((call) => call.id === id));
  const current = useFeed((snapshot) => snapshot.hello?.run);
  const { data, error } = useCallDetail(id, row);
  const call = row ?? data?.call;
  const events = data?.evidence.events ?? NONE;
  const picture = usePicture(events, call === undefined ? "client" : `${call.session ?? ""} ${clientOf(call)}`.trim());
  const whole = <Link href={`/ladder?client=${encodeURIComponent(call?.session ?? "")}`}>All of {call?.session}</Link>;
  return (
    <LadderPage
      title={`Ladder of call ${id}`}
      file={`ladder-${id}`}
      picture={picture}
      origin={picture.steps[0]}
      current={call !== undefined && call.run === current}
      links={
        <>
          <Link href={`/calls/${encodeURIComponent(id)}`}>The call</Link>
          {call !== undefined && call.session !== null && call.run === current && whole}
        </>
      }
      note={call === undefined ? null : `${call.tool}: ${conclusionOf(call, events)}${data?.evidence.complete === false ? "; some of its entries are missing" : ""}`}
      empty={
        <EmptyState title={error === null ? (data === undefined ? "Looking for the call" : "No message of this call is known") : "This call could not be read"}>
          {error !== null && <p role="alert">{error.message}</p>}
        </EmptyState>
      }
    />
  );
}
