import { type ComponentType, type ReactNode, useCallback, useMemo } from "react";
import { useLocation, useParams, useSearch } from "wouter";
import { DataTable } from "./data-table";
import type { Column } from "./grid-columns";
import { Page } from "./page";
import { SearchField } from "./search-field";
import { ShownOf } from "./shown-of";
import type { Tab } from "./tabs";
import { useUrlState } from "./url-state";

interface Row {
  id: string;
  /** In seconds since the epoch. */
  opened_at: number;
}

interface TableViewProps<Each extends Row> {
  title: string;
  /** See `Page`. */
  tabs?: readonly Tab[];
  part?: string;
  /** What the table holds, for those who hear it. */
  label: string;
  /** Where the view is; `PATH/ID` shows one row with its detail. */
  path: string;
  /** What the search field searches. */
  search: string;
  all: readonly Each[];
  /** Whether a row passes the other filters, and the words that are searched in it. */
  passes: (row: Each) => boolean;
  wordsOf: (row: Each) => string;
  columns: readonly Column<Each>[];
  /** Those that fit beside the detail of one row. */
  fewColumns: readonly Column<Each>[];
  /** The choices before the search field. */
  filters: ReactNode;
  /** What is known of one row. */
  Detail: ComponentType<{ id: string; onClose: () => void }>;
  empty: ReactNode;
}

/** Rows that can be filtered, the newest first; one of them with all that is known of it. The text and the row are in the address. */
export function TableView<Each extends Row>({ title, tabs, part, label, path, search, all, passes, wordsOf, columns, fewColumns, filters, Detail, empty }: TableViewProps<Each>) {
  const { id } = useParams<{ id?: string }>();
  const [, navigate] = useLocation();
  const query = useSearch();
  const [text, setText] = useUrlState("text");
  const rows = useMemo(() => {
    const wanted = text.toLowerCase();
    return all.filter((row) => passes(row) && wordsOf(row).toLowerCase().includes(wanted)).toSorted((a, b) => b.opened_at - a.opened_at);
  }, [all, passes, wordsOf, text]);
  const go = useCallback((to: string) => navigate(`${path}${to}${query === "" ? "" : `?${query}`}`), [navigate, path, query]);
  const close = useCallback(() => go(""), [go]);
  const tools = (
    <>
      {filters}
      <SearchField label={search} value={text} onChange={setText} />
      <ShownOf shown={rows.length} all={all.length} />
    </>
  );
  return (
    <Page title={title} tabs={tabs} part={part} tools={tools} drawer={id !== undefined && <Detail id={id} onClose={close} />}>
      <DataTable
        label={label}
        columns={id === undefined ? columns : fewColumns}
        rows={rows}
        rowKey={(row) => row.id}
        selected={id}
        onSelect={(row) => go(`/${row.id}`)}
        empty={empty}
      />
    </Page>
  );
}
