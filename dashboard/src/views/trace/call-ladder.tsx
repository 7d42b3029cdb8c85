import { Link } from "wouter";
import { traceHref } from "~/protocol/address";
import { useCallDetail } from "~/trace/call-detail";
import { useFeed } from "~/trace/use-feed";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { usePicture } from "~/widgets/ladder/picture";
import { clientOf } from "~/words/client-name";
import { EntryDrawer } from "./drawer";
import { LadderFrame } from "./ladder-frame";
import { type TraceUrl, placeOf } from "./url";

const NONE = [] as const;

/** The messages of one call, also of an earlier run. */
export function CallLadder({ id, url }: { id: string; url: TraceUrl }) {
  const row = useFeed((snapshot) => snapshot.tables.calls.find((call) => call.id === id));
  const current = useFeed((snapshot) => snapshot.hello?.run ?? "");
  const { data, error } = useCallDetail(id, row);
  const call = row ?? data?.call;
  const { events, exchanges } = data?.evidence ?? { events: NONE, exchanges: NONE };
  const picture = usePicture(events, exchanges, call === undefined ? "client" : `${call.session ?? ""} ${clientOf(call)}`.trim());
  const at = placeOf(url.at)?.seq ?? null;
  const ending = exchanges.find((each) => each.call === call?.call)?.ending;
  const selected = at === null ? undefined : events.findLast(({ seq }) => seq <= at);
  const close = () => url.change({ at: "" }, true);
  const drawer = selected !== undefined && call !== undefined && <EntryDrawer run={call.run} current={current} entry={selected} url={url} onClose={close} />;
  return (
    <Page title={`Ladder of ${call?.tool ?? "a call"}`} drawer={drawer}>
      <LadderFrame
        title={`Ladder of call ${id}`}
        file={`ladder-${id}`}
        picture={picture}
        origin={picture.steps[0]}
        at={at}
        onOpen={(seq) => url.change({ at: `${call?.run ?? current}-${seq}` }, true)}
        behind={
          <>
            <Link href={`/calls/${encodeURIComponent(id)}`}>The call</Link>
            {call !== undefined && call.session !== null && call.run === current && <Link href={traceHref({ view: "ladder", filter: `client:${call.session}` })}>All of {call.session}</Link>}
          </>
        }
        note={call === undefined ? null : `${[call.tool, ending?.text].filter(Boolean).join(": ")}${data?.evidence.complete === false ? "; some of its entries are missing" : ""}`}
        empty={
          <EmptyState title={error === null ? (data === undefined ? "Looking for the call" : "No message of this call is known") : "This call could not be read"}>
            {error !== null && <p role="alert">{error.message}</p>}
          </EmptyState>
        }
      />
    </Page>
  );
}
