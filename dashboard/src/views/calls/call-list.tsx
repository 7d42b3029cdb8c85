import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { ApiError, apiUrl, get, useRefresh } from "~/protocol/client";
import type { CallPage, CallRow, ToolList } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { useEnded } from "~/trace/use-trace";
import { Button, CopyButton } from "~/ui/buttons";
import { DataTable } from "~/ui/data-table";
import type { Column } from "~/ui/grid-columns";
import { Page } from "~/ui/page";
import { EmptyState } from "~/ui/panel";
import { Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { useNarrow, useUrlState } from "~/ui/window";
import { ClientMark, ProgressBar, StatusBadge, TransportBadge, TypedValue } from "~/widgets/badges";
import { NothingYet } from "~/widgets/connect-client";
import { FilterBy, FilterContext } from "~/widgets/filter-line";
import { CallMarks, useCallFindings } from "~/widgets/findings";
import { clientOf, counted } from "~/words/text";
import { Took } from "./call-facts";
import { callHref, CALLS_TABS, isDivider, type Line, merged, oneLine, stateOfCall, withDividers } from "./calls";
import styles from "./calls.module.css";
import { fieldOf, FilterBar, questionOf } from "./filters";

/** All calls that the server has, before and after a restart; what the API refuses is said at the filter that it is about. */
export function CallList() {
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  const run = useFeed((snapshot) => snapshot.hello?.run ?? "");
  const startedAt = useFeed((snapshot) => snapshot.hello?.started_at ?? 0);
  const narrow = useNarrow();
  const question = questionOf(params);
  const { calls, history, rows } = useCalls(question);
  const tools = useKnownTools(rows);
  const findings = useCallFindings(calls);
  // verdicts come after their rows: the column is as wide as they are
  const columns = useMemo(() => columnsOf(findings), [findings]);
  const lines = useMemo(() => withDividers(calls, run, startedAt), [calls, run, startedAt]);
  const refused = history.error instanceof ApiError && history.error.status === 400 ? history.error.message : null;
  const filterBy = useCallback((word: string, value: string) => setParams((before) => new URLSearchParams([...[...before].filter(([name]) => name !== word), [word, value]])), [setParams]);
  const field = refused === null ? null : fieldOf(refused);
  const empty = history.isSuccess && question.size === 0 ? <NoCalls /> : <NoneFound looking={history.isPending} tool={params.get("tool")} tools={tools} />;
  return (
    <Page title="Calls" tabs={CALLS_TABS}>
      <FilterBar known={rows} tools={tools} narrow={narrow} error={field === null ? null : { field, message: refused ?? "" }} />
      {history.error !== null && field === null && (
        <p role="alert" className={`${styles["alert"]} strip`}>
          The server did not answer: {history.error.message}
        </p>
      )}
      {refused === null && (
        <>
          <FilterContext value={filterBy}>
            <DataTable
              label="Calls"
              remember="calls"
              columns={columns}
              rows={lines}
              rowKey={idOf}
              cameAt={cameAt}
              across={across}
              onSelect={(line) => !isDivider(line) && navigate(callHref(line.id))}
              empty={empty}
            />
          </FilterContext>
          <Foot history={history} shown={calls.length} question={question} />
        </>
      )}
    </Page>
  );
}

const idOf = ({ id }: Line) => id;

const cameAt = (line: Line) => (isDivider(line) ? 0 : line.started_at);
const across = (line: Line) => (isDivider(line) ? <span className={styles["divider"]}>{line.divides}</span> : undefined);

interface FootProps {
  history: ReturnType<typeof useCalls>["history"];
  shown: number;
  question: URLSearchParams;
}

function Foot({ history, shown, question }: FootProps) {
  const query = Object.fromEntries(question);
  return (
    <div className={`${styles["foot"]} row quiet`}>
      <span role="status">
        {counted(shown, "call")}
        {history.hasNextPage ? ", there are more" : ""}
      </span>
      {history.hasNextPage && (
        <Button small disabled={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
          Load older
        </Button>
      )}
      <span>Export these:</span>
      <a href={apiUrl("/calls.ndjson", query)} download>
        NDJSON
      </a>
      <a href={apiUrl("/calls.csv", query)} download>
        CSV
      </a>
      <CopyButton text={() => new URL(apiUrl("/calls", query), location.href).href} label="Copy API link" />
    </div>
  );
}

interface NoneFoundProps {
  looking: boolean;
  /** The tool that is asked for. */
  tool: string | null;
  tools: readonly string[];
}

function NoneFound({ looking, tool, tools }: NoneFoundProps) {
  const [, setTool] = useUrlState("tool");
  // the filter takes whole names
  const meant = tool === null || tool === "" || tools.includes(tool) ? [] : tools.filter((each) => each.includes(tool)).slice(0, 5);
  return (
    <div className={styles["fill"]}>
      <EmptyState title={looking ? "Asking the server" : "No call passes these filters"}>
        {meant.length === 0 ? (
          <p>Every tool call is kept from its start on, until newer ones need its place.</p>
        ) : (
          <p>
            No tool is called <code>{tool}</code>. These have it in their names:{" "}
            {meant.map((each) => (
              <Button key={each} small onClick={() => setTool(each)}>
                {each}
              </Button>
            ))}
          </p>
        )}
      </EmptyState>
    </div>
  );
}

/** What stands where no call was made. */
function NoCalls() {
  return (
    <NothingYet title="No calls yet">
      Each tool call appears here when it starts, and says in the end what came of it. Call <code>progress</code> for one with
      steps, and cancel it to see who stopped it and how long that took. A server that is started
      with <code>--audit-db FILE</code> keeps its calls over a restart.
    </NothingYet>
  );
}

type Of = (call: CallRow) => string | number | null;

/** A column that calls have, and lines between two runs of the server have not. */
const of = (column: Omit<Column<CallRow>, "sortBy">, by?: Of): Column<Line> => ({
  ...column,
  cell: (line: Line) => (isDivider(line) ? null : column.cell(line)),
  ...(by !== undefined && { sortBy: (line: Line) => (isDivider(line) ? undefined : by(line)) }),
});

/** The columns of the list of calls; what a phone has no room for is on the page of a call. */
const columnsOf = (findings: ReturnType<typeof useCallFindings>): readonly Column<Line>[] => [
  of({ key: "started", head: "Started", width: { fit: [4, 9] }, cell: (call) => <Time at={call.started_at} /> }, (call) => call.started_at),
  of({ key: "tool", head: "Tool", width: { fit: [5, 14] }, cell: (call) => <FilterBy word="tool" value={call.tool}>{call.tool}</FilterBy> }, (call) => call.tool),
  of({ key: "outcome", head: "Outcome", width: { fit: [5, 9] }, cell: (call) => <Outcome call={call} /> }, stateOfCall),
  of({ key: "findings", head: "Findings", title: "Rules that the client broke with this call, as the judge says", width: { fit: [4, 21] }, from: 46, cell: (call) => <CallMarks findings={findings(call)} /> }),
  of({ key: "duration", head: "Took", width: { fit: [4.5, 7] }, align: "end", from: 26, cell: (call) => <Took call={call} /> }, (call) => call.duration_ms),
  of({ key: "client", head: "Client", width: { grow: 1, least: 7 }, from: 34, cell: (call) => <Client call={call} /> }, (call) => call.session),
  of({ key: "arguments", head: "Arguments", width: { grow: 2, least: 6 }, from: 58, cell: (call) => <code title={oneLine(call.arguments)}>{oneLine(call.arguments)}</code> }),
  of({ key: "token", head: "Token", title: "The progress token, with its JSON type", width: { fit: [3, 8] }, from: 78, cell: (call) => call.progress_token !== null && <TypedValue value={call.progress_token} /> }),
  of({ key: "steps", head: "Steps", width: "6rem", from: 64, cell: (call) => <Steps call={call} /> }, (call) => call.steps_done),
  of({ key: "cancelled", head: "Cancelled", width: { fit: [4, 12] }, from: 70, cell: (call) => <Cancelled call={call} /> }, (call) => call.cancelled_how),
  of({ key: "messages", head: "Received", title: "Messages beside the answer: how many the client received, of those sent", width: { fit: [4, 8] }, align: "end", from: 74, cell: (call) => <Messages call={call} /> }, (call) => call.delivered),
];

function Client({ call }: { call: CallRow }) {
  const name = (
    <>
      {call.session === null ? "unknown" : <ClientMark label={call.session} />} {call.label}
    </>
  );
  return (
    <span title={`${clientOf(call)}, ${call.revision} over ${call.transport}`}>
      {call.session === null ? name : <FilterBy word="session" value={call.session}>{name}</FilterBy>} <span className="quiet">{call.client_name || "no name given"}</span>{" "}
      {call.transport !== "http" && <TransportBadge transport={call.transport} short />}
    </span>
  );
}

function Outcome({ call }: { call: CallRow }) {
  return (
    <FilterBy word="outcome" value={stateOfCall(call)}>
      <StatusBadge status={stateOfCall(call, useEnded())} />
    </FilterBy>
  );
}

function Steps({ call }: { call: CallRow }) {
  const state = stateOfCall(call, useEnded());
  if (call.steps_done === null && call.outcome !== null) return null;
  return <ProgressBar label={`steps of call ${call.id}`} done={call.steps_done} total={call.steps_total} status={state} />;
}

function Cancelled({ call }: { call: CallRow }) {
  if (call.cancelled_how === null) return null;
  return (
    <>
      <span className={styles["strong"]} title={`cancelled ${call.cancelled_how}; ${call.cancel_reason ?? "no reason given"}`}>
        {call.cancelled_how}
      </span>
      {call.cancel_latency_ms !== null && <span title="until the work had stopped">, {formatDuration(call.cancel_latency_ms)}</span>}
    </>
  );
}

function Messages({ call }: { call: CallRow }) {
  if (call.emitted === 0) return null;
  const missing = call.emitted - call.delivered;
  return (
    <span title={missing === 0 ? undefined : `${missing} sent and not received`} className={missing === 0 ? undefined : styles["strong"]}>
      {call.delivered} of {call.emitted}
    </span>
  );
}

const PAGE = 50;
// how often the newest page is asked for at most, in milliseconds
const PACE = 1000;

/** The calls that a question (`filters.questionOf`) finds, newest first: page by page, and those that start or change meanwhile. */
function useCalls(question: URLSearchParams) {
  const asked = question.toString();
  const rows = useFeed((snapshot) => snapshot.tables.calls);
  const [first] = useState(rows);
  const ask = (cursor: string | null, signal: AbortSignal) => get<CallPage>("/calls", { ...Object.fromEntries(new URLSearchParams(asked)), limit: PAGE, cursor }, signal);
  const history = useInfiniteQuery({
    queryKey: ["calls", asked],
    queryFn: ({ pageParam, signal }) => ask(pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  useRefresh(["newest calls"], rows, PACE);
  const newest = useQuery({
    queryKey: ["newest calls", asked],
    queryFn: ({ signal }) => ask(null, signal),
    // a question that was refused would be refused again
    enabled: rows !== first && history.isSuccess,
  });
  const { refetch } = history;
  const older = useMemo(() => (history.data?.pages ?? []).flatMap((page) => page.calls), [history.data]);
  // more calls came at once than a page has: there may be some between
  const torn = isTorn(newest.data, older);
  useEffect(() => {
    if (torn) void refetch();
  }, [torn, refetch]);
  const calls = useMemo(() => merged([older, newest.data?.calls ?? []], rows, asked === ""), [older, newest.data, rows, asked]);
  return { calls, history, rows };
}

function isTorn(newest: CallPage | undefined, older: readonly CallRow[]): boolean {
  if (newest === undefined || newest.next === null || older.length === 0) return false;
  const known = new Set(older.map(({ id }) => id));
  return !newest.calls.some(({ id }) => known.has(id));
}

/** The names of the tools that the server has, and of those that were called, in the order of the alphabet. */
function useKnownTools(calls: readonly CallRow[]): readonly string[] {
  const { data } = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get<ToolList>("/tools", {}, signal) });
  return useMemo(() => [...new Set([...(data?.tools ?? []).map(({ name }) => name), ...calls.map(({ tool }) => tool)])].toSorted(), [data, calls]);
}
