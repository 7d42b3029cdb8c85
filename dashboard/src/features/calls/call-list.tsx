import { useMemo } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import type { CallRow } from "~/api/schema";
import { useFeed } from "~/feed/use-feed";
import { CallFindingsContext, useCallFindings } from "~/judged/use-call-findings";
import { Segmented } from "~/ui/choice";
import { DataTable } from "~/ui/data-table";
import { Page } from "~/ui/page";
import { useUrlState } from "~/ui/url-state";
import { Audit } from "./audit";
import { callColumns } from "./call-columns";
import { type CallTable, RECENT, callHref, choose, compareHref, recentCalls } from "./calls";
import styles from "./calls.module.css";
import { questionOf } from "./filters";
import { NoCalls } from "./no-calls";

const MODES = [
  { value: "recent", label: "Recent" },
  { value: "audit", label: "Audit" },
];

/** Calls: the newest as they happen, or those of the audit that pass filters. A link with filters opens the audit. */
export function CallList() {
  const [params, setParams] = useSearchParams();
  const [compare, setCompare] = useUrlState("compare");
  const [, navigate] = useLocation();
  const findings = useCallFindings();
  const chosen = useMemo(() => (compare === "" ? [] : compare.split(",")), [compare]);
  const columns = useMemo(
    () => callColumns({ chosen, toggle: (id) => setCompare(choose(chosen, id).join(",")) }),
    [chosen, setCompare],
  );
  const audit = params.get("mode") === "audit" || questionOf(params).size > 0;
  // the recent calls have no filters, so leaving the audit takes them away
  const setMode = (mode: string) => setParams({ ...(mode === "audit" && { mode }), ...(compare !== "" && { compare }) });
  const tools = (
    <>
      <Segmented label="Calls" options={MODES} value={audit ? "audit" : "recent"} onChange={setMode} />
      <Comparing chosen={chosen} />
    </>
  );
  const table = (calls: readonly CallRow[], empty: React.ReactNode) => (
    <DataTable
      label="Calls"
      columns={columns}
      rows={calls}
      rowKey={(call) => call.id}
      onSelect={(call) => navigate(callHref(call.id))}
      empty={empty}
    />
  );
  return (
    <Page title="Calls" tools={tools}>
      <CallFindingsContext value={findings}>{audit ? <Audit table={table} /> : <Recent table={table} />}</CallFindingsContext>
    </Page>
  );
}

function Comparing({ chosen }: { chosen: readonly string[] }) {
  const [a, b] = chosen;
  if (a === undefined) return <span className={styles["quiet"]}>Check two calls to compare them</span>;
  if (b === undefined) return <span className={styles["quiet"]}>Check one more call to compare it with {a}</span>;
  return (
    <Link href={compareHref(a, b)}>
      Compare {a} with {b}
    </Link>
  );
}

function Recent({ table }: { table: CallTable }) {
  const calls = useFeed((snapshot) => snapshot.tables.calls);
  const recent = useMemo(() => recentCalls(calls), [calls]);
  return (
    <>
      {table(recent, <NoCalls />)}
      {calls.length > recent.length && (
        <p className={styles["foot"]}>
          Running calls and the last {RECENT} that ended. All of them are in the <Link href="/calls?mode=audit">audit</Link>.
        </p>
      )}
    </>
  );
}
