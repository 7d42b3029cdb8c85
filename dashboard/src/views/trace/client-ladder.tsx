import { useMemo } from "react";
import { Link } from "wouter";
import { only, withOnly } from "~/protocol/filter";
import type { SessionRow } from "~/protocol/schema";
import { type Traced, entriesOfSpans } from "~/trace/use-trace";
import { Button } from "~/ui/button";
import { Select } from "~/ui/choice";
import { EmptyState } from "~/ui/empty-state";
import { usePicture } from "~/widgets/ladder/picture";
import { clientName, clientsOf } from "~/words/client-name";
import { LadderFrame } from "./ladder-frame";
import { type TraceUrl, placeOf } from "./url";

const number = (label: string) => Number(/\d+$/.exec(label)?.[0] ?? 0);

const newest = (of: readonly SessionRow[]) => of.toSorted((a, b) => b.last_at - a.last_at)[0]?.id ?? null;

/** The client of a filter line, or the one that spoke last: a ladder is that of one. A name stands for its newest session. */
export function ladderClient(line: string, rows: readonly SessionRow[]): string | null {
  const clients = clientsOf(rows);
  const asked = only(line, "client");
  if (asked === null) return newest(clients);
  return clients.some(({ id }) => id === asked) ? asked : (newest(clients.filter((row) => row.label === asked || row.client_name === asked)) ?? asked);
}

interface ClientLadderProps {
  client: string | null;
  traced: Traced;
  url: TraceUrl;
  onOpen: (run: string, seq: number) => void;
}

/** The messages of the requests that pass the filter, of one client of the present run. */
export function ClientLadder({ client, traced, url, onOpen }: ClientLadderProps) {
  const { snapshot, run, spans, loading, loader } = traced;
  const { sessions } = snapshot.tables;
  const view = snapshot.trace.runs.at(-1);
  const own = useMemo(() => spans.filter((span) => span.run === run), [spans, run]);
  const entries = useMemo(() => (view === undefined ? [] : entriesOfSpans(view, own)), [view, own]);
  const rows = useMemo(() => own.map(({ row }) => row), [own]);
  const picture = usePicture(entries, rows, clientName(client, sessions));
  const options = clientsOf(sessions)
    .toSorted((a, b) => number(b.id) - number(a.id))
    .map(({ id }) => ({ value: id, label: clientName(id, sessions) }));
  const searching = loading.busy === "search" || (loading.found === null && loading.error === null);
  return (
    <LadderFrame
      key={client}
      title={`Ladder of ${client ?? "no client"}`}
      file={`ladder-${client}`}
      picture={picture}
      follow
      at={placeOf(url.at)?.seq ?? null}
      onOpen={(seq) => onOpen(run, seq)}
      before={<Select label="Client" options={options} value={client ?? ""} onChange={(id) => url.filter(withOnly(url.line, "client", id))} />}
      behind={
        client !== null && (
          <>
            <Link href={`/clients/${encodeURIComponent(client)}`}>The client</Link>
            {loading.found?.next != null && (
              <Button disabled={loading.busy !== null} onClick={() => loader.more(run)}>
                Search older
              </Button>
            )}
          </>
        )
      }
      note={searching ? `Reading the log: ${entries.length} entries so far` : loading.found?.next != null ? `The newest ${own.length} of ${loading.found.matched} requests` : null}
      empty={
        <EmptyState title={loading.error !== null ? "The log could not be read" : searching ? "Reading the log" : url.range === null ? "No message of this client is in the log" : "No message in this time"}>
          {loading.error !== null && <p role="alert">{loading.error}</p>}
          {url.range !== null && <Button onClick={() => url.setRange(null)}>Show all of the time</Button>}
        </EmptyState>
      }
    />
  );
}
