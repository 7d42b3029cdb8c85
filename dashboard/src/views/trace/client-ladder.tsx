import { Link } from "wouter";
import type { SessionRow } from "~/protocol/schema";
import { useMcpAddress } from "~/protocol/use-server";
import { useFeed } from "~/trace/use-feed";
import { Select } from "~/ui/choice";
import { EmptyState } from "~/ui/empty-state";
import { useUrlState } from "~/ui/url-state";
import { usePicture } from "~/widgets/ladder/picture";
import { NothingConnected } from "~/widgets/nothing-connected";
import { UNATTRIBUTED, clientName, clientsOf } from "~/words/client-name";
import { LadderPage } from "./ladder-page";
import { MOST, useClientEntries } from "./use-client-entries";

const number = (label: string) => Number(/\d+$/.exec(label)?.[0] ?? 0);

const newestOf = (rows: readonly SessionRow[]) => rows.toSorted((a, b) => b.last_at - a.last_at)[0]?.id;

/**
 * The messages of a session or of a modern client. A name that a client was given stands for its newest session, no name for the one
 * that spoke last.
 */
export function ClientLadder({ session }: { session: string }) {
  const rows = useFeed((snapshot) => snapshot.tables.sessions);
  const run = useFeed((snapshot) => snapshot.hello?.run ?? "");
  const [, choose] = useUrlState("client", "", true);
  const address = useMcpAddress();
  const clients = clientsOf(rows);
  const named = newestOf(clients.filter(({ label }) => label === session));
  const shown = clients.some(({ id }) => id === session) ? session : (named ?? (session || (newestOf(clients) ?? "")));
  const { entries, loading, cut, error } = useClientEntries(run, shown);
  const name = clientName(shown === "" ? null : shown, rows);
  const picture = usePicture(entries, name);
  const options = clients.toSorted((a, b) => number(b.id) - number(a.id)).map(({ id }) => ({ value: id, label: clientName(id, rows) }));
  if (run !== "" && clients.length === 0 && session === "") {
    return (
      <LadderPage
        title="Ladder"
        file="ladder"
        picture={picture}
        current
        note={null}
        empty={<NothingConnected address={address}>The messages between each client and this server become a sequence diagram here.</NothingConnected>}
      />
    );
  }
  return (
    <LadderPage
      key={shown}
      title={shown === "" ? "Ladder" : `Ladder of ${shown}`}
      file={`ladder-${shown}`}
      picture={picture}
      current
      follow
      filters={<Select label="Client" options={options} value={shown} onChange={choose} />}
      links={
        shown !== "" &&
        shown !== UNATTRIBUTED && (
          <>
            <Link href={`/clients/${encodeURIComponent(shown)}`}>The client</Link>
            <Link href={`/live?session=${encodeURIComponent(shown)}`}>Its log</Link>
          </>
        )
      }
      note={loading ? `Loading: ${entries.length} entries so far` : cut ? missing(entries.length) : null}
      empty={
        <EmptyState title={error !== null ? "The log could not be read" : loading ? "Reading the log" : "No message of this client is in the log"}>
          {error === null ? <p>The log keeps the newest entries; those of <code>{shown}</code> were pushed out of it, or belong to an earlier run.</p> : <p role="alert">{error.message}</p>}
        </EmptyState>
      }
    />
  );
}

function missing(count: number): string {
  return count >= MOST ? `The newest ${count} entries of this client; older ones are in its log.` : "The first entries of this client were pushed out of the log.";
}
