import { useCallback, useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";
import { ApiError, apiUrl } from "~/protocol/client";
import { useFeed } from "~/trace/use-feed";
import { Button } from "~/ui/button";
import { CopyButton } from "~/ui/copy-button";
import { DataTable } from "~/ui/data-table";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { useUrlState } from "~/ui/url-state";
import { useNarrow } from "~/ui/use-narrow";
import { FilterContext } from "~/widgets/filter-by";
import { NothingYet } from "~/widgets/nothing-yet";
import { CallFindingsContext, useCallFindings } from "~/widgets/use-call-findings";
import { counted } from "~/words/counted";
import { CALL_COLUMNS } from "./call-columns";
import { callHref, isDivider, type Line, withDividers } from "./calls";
import { CALLS_TABS } from "./calls-tabs";
import styles from "./calls.module.css";
import { FilterBar } from "./filter-bar";
import { fieldOf, questionOf } from "./filters";
import { useCalls, useKnownTools } from "./use-calls";

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
  const findings = useCallFindings();
  const lines = useMemo(() => withDividers(calls, run, startedAt), [calls, run, startedAt]);
  const refused = history.error instanceof ApiError && history.error.status === 400 ? history.error.message : null;
  const filterBy = useCallback((word: string, value: string) => setParams((before) => new URLSearchParams([...[...before].filter(([name]) => name !== word), [word, value]])), [setParams]);
  const field = refused === null ? null : fieldOf(refused);
  const empty = history.isSuccess && question.size === 0 ? <NoCalls /> : <NoneFound looking={history.isPending} tool={params.get("tool")} tools={tools} />;
  return (
    <Page title="Calls" tabs={CALLS_TABS}>
      <FilterBar known={rows} tools={tools} narrow={narrow} error={field === null ? null : { field, message: refused ?? "" }} />
      {history.error !== null && field === null && (
        <p role="alert" className={styles["alert"]}>
          The server did not answer: {history.error.message}
        </p>
      )}
      {refused === null && (
        <CallFindingsContext value={findings}>
          <FilterContext value={filterBy}>
            <DataTable
              label="Calls"
              remember="calls"
              columns={CALL_COLUMNS}
              rows={lines}
              rowKey={idOf}
              across={across}
              onSelect={(line) => !isDivider(line) && navigate(callHref(line.id))}
              empty={empty}
            />
          </FilterContext>
          <Foot history={history} shown={calls.length} question={question} />
        </CallFindingsContext>
      )}
    </Page>
  );
}

const idOf = ({ id }: Line) => id;
const across = (line: Line) => (isDivider(line) ? <span className={styles["divider"]}>{line.divides}</span> : undefined);

interface FootProps {
  history: ReturnType<typeof useCalls>["history"];
  shown: number;
  question: URLSearchParams;
}

function Foot({ history, shown, question }: FootProps) {
  const query = Object.fromEntries(question);
  return (
    <div className={styles["foot"]}>
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
