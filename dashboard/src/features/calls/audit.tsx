import { useSearchParams } from "wouter";
import { ApiError, apiUrl } from "~/api/client";
import { useFeed } from "~/feed/use-feed";
import { Button } from "~/ui/button";
import { EmptyState } from "~/ui/empty-state";
import type { CallTable } from "./calls";
import styles from "./calls.module.css";
import { FilterBar } from "./filter-bar";
import { fieldOf, questionOf } from "./filters";
import { NoCalls } from "./no-calls";
import { useAudit } from "./use-audit";

/** All calls that are kept, by filters; what the API refuses is said at the filter that it is about. */
export function Audit({ table }: { table: CallTable }) {
  const [params] = useSearchParams();
  const question = questionOf(params);
  const rows = useFeed((snapshot) => snapshot.tables.calls);
  const audit = useAudit(question, params.get("tail") === "on" ? rows : null);
  const refused = audit.error instanceof ApiError ? audit.error.message : null;
  const field = refused === null ? null : fieldOf(refused);
  const calls = audit.data?.pages.flatMap((page) => page.calls) ?? [];
  return (
    <>
      <FilterBar known={rows} error={field === null ? null : { field, message: refused ?? "" }} />
      {audit.error !== null && field === null && (
        <p role="alert" className={styles["alert"]}>
          The audit did not answer: {audit.error.message}
        </p>
      )}
      {audit.error === null && table(calls, audit.isSuccess && question.size === 0 ? <NoCalls /> : <NoneFound looking={audit.isPending} />)}
      {audit.error === null && <Foot audit={audit} shown={calls.length} question={question} />}
    </>
  );
}

interface FootProps {
  audit: ReturnType<typeof useAudit>;
  shown: number;
  question: URLSearchParams;
}

function Foot({ audit, shown, question }: FootProps) {
  const query = Object.fromEntries(question);
  return (
    <div className={styles["foot"]}>
      <span role="status">
        {shown} {shown === 1 ? "call" : "calls"}
        {audit.hasNextPage ? ", there are more" : ""}
      </span>
      {audit.hasNextPage && (
        <Button small disabled={audit.isFetchingNextPage} onClick={() => void audit.fetchNextPage()}>
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
    </div>
  );
}

function NoneFound({ looking }: { looking: boolean }) {
  return (
    <div className={styles["fill"]}>
      <EmptyState title={looking ? "Asking the audit" : "No call passes these filters"}>
        <p>Every tool call is kept from its start on, until newer ones need its place.</p>
      </EmptyState>
    </div>
  );
}
