import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useCallDetail } from "~/api/call-detail";
import { ApiError, get } from "~/api/client";
import type { CallDetail, CallPage as Page_, CallRow } from "~/api/schema";
import { useFeed } from "~/feed/use-feed";
import { FindingMarks } from "~/judged/finding-mark";
import { useCallFindings } from "~/judged/use-call-findings";
import { StatusBadge } from "~/ui/badge";
import { CopyButton } from "~/ui/copy-button";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Panel, Panels, Stack } from "~/ui/panel";
import { CallFacts } from "./call-facts";
import { compareHref, stateOfCall } from "./calls";
import styles from "./calls.module.css";
import { EvidencePanel } from "./evidence-panel";
import { JsonPart } from "./json-part";

/** One call with all that is known of it. */
export function CallPage({ id }: { id: string }) {
  const run = useFeed((snapshot) => snapshot.hello?.run);
  const row = useFeed((snapshot) => snapshot.tables.calls.find((call) => call.id === id));
  const detail = useCallDetail(id, row);
  return (
    <Page title={`Call ${id}`} tools={<Tools id={id} call={detail.data?.call} current={detail.data?.call.run === run} />} scroll>
      {detail.data === undefined ? <Missing id={id} error={detail.error} /> : <Detail detail={detail.data} row={row} run={run} />}
    </Page>
  );
}

/** The row of the feed is newer than the answer of the API, when it is there. */
function Detail({ detail, row, run }: { detail: CallDetail; row: CallRow | undefined; run: string | undefined }) {
  const call = row ?? detail.call;
  const current = call.run === run;
  const findings = useCallFindings()(call);
  return (
    <Stack>
      {findings.length > 0 && (
        <p>
          Findings of the judge on it: <FindingMarks findings={findings} />
        </p>
      )}
      <CallFacts call={call} entries={detail.evidence.events} current={current} />
      <Panels>
        <Panel title="Arguments">
          <JsonPart title={`arguments of ${call.tool}`} value={call.arguments} />
        </Panel>
        <Panel title="Result">
          <JsonPart
            title={`result of ${call.tool}`}
            value={call.result}
            absent={call.outcome === null ? "There is none yet." : "There is none."}
          />
        </Panel>
      </Panels>
      <EvidencePanel evidence={detail.evidence} current={current} />
    </Stack>
  );
}

function Tools({ id, call, current }: { id: string; call: CallRow | undefined; current: boolean }) {
  const before = useQuery({
    queryKey: ["call before", call?.id],
    queryFn: ({ signal }) => get<Page_>("/calls", { tool: call?.tool, until: call?.started_at, limit: 1 }, signal),
    select: (page) => page.calls[0]?.id ?? null,
    enabled: call !== undefined,
  });
  return (
    <nav className={styles["links"]} aria-label="Call">
      {call && <StatusBadge status={stateOfCall(call)} />}
      <Link href="/calls">All calls</Link>
      {call && current && <Link href={`/live?call=${encodeURIComponent(call.call)}`}>Its entries in Live</Link>}
      {before.data != null && <Link href={compareHref(before.data, id)}>Compare with the previous {call?.tool}</Link>}
      <CopyButton text={() => location.href} label="Copy link" />
    </nav>
  );
}

function Missing({ id, error }: { id: string; error: Error | null }) {
  if (error === null) return <EmptyState title="Looking for the call" />;
  const gone = error instanceof ApiError && error.status === 404;
  return (
    <EmptyState title={gone ? "This call is not known" : "The call could not be read"}>
      <p role="alert">{error.message}</p>
      {gone && (
        <p>
          <code>{id}</code> may have made room for newer ones, or belong to an earlier run of a server without an audit file.
        </p>
      )}
    </EmptyState>
  );
}
