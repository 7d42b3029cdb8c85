import { type ReactNode, useMemo } from "react";
import { Link } from "wouter";
import { traceHref } from "~/protocol/client";
import { only, withOnly } from "~/protocol/filter";
import type { SessionRow } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { entriesOfSpans, type Traced, useCallDetail, useEnded } from "~/trace/use-trace";
import { Button, CopyButton } from "~/ui/buttons";
import { DataTable } from "~/ui/data-table";
import { SearchField, Segmented, Select } from "~/ui/fields";
import type { Column } from "~/ui/grid-columns";
import { Page } from "~/ui/page";
import { EmptyState } from "~/ui/panel";
import { useUrlState } from "~/ui/window";
import { Ladder } from "~/widgets/ladder/ladder";
import { layoutOf, type Pace, type Picture, usePicture } from "~/widgets/ladder/picture";
import { hasText, labelOf, type Row, rowsOf, timeOf } from "~/widgets/ladder/rows";
import { downloadSvg, PrintedLadder } from "~/widgets/ladder/sheet";
import type { Step } from "~/widgets/ladder/steps";
import { sentenceOf } from "~/words/spans";
import { stateIn } from "~/words/states";
import { clientName, clientOf, clientsOf } from "~/words/text";
import { type Controls, useControls } from "./controls";
import { EntryDrawer } from "./drawer";
import { placeOf, type TraceUrl } from "./url";

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
  const ended = useEnded();
  const ending = exchanges.find((each) => each.call === call?.call)?.ending;
  const selected = at === null ? undefined : events.findLast(({ seq }) => seq <= at);
  const close = () => url.change({ at: "" }, true);
  const controls = useControls();
  const drawer = selected !== undefined && call !== undefined && <EntryDrawer run={call.run} current={current} entry={selected} url={url} onClose={close} />;
  return (
    <Page title={`Ladder of ${call?.tool ?? "a call"}`} tools={controls.button} drawer={drawer}>
      <LadderFrame
        controls={controls}
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
        note={call === undefined ? null : `${call.tool}${ending === undefined ? "" : `, ${sentenceOf({ ...ending, state: stateIn(ending.state, ended) })}`}${data?.evidence.complete === false ? "; some of its entries are missing" : ""}`}
        empty={
          <EmptyState title={error === null ? (data === undefined ? "Looking for the call" : "No message of this call is known") : "This call could not be read"}>
            {error !== null && <p role="alert">{error.message}</p>}
          </EmptyState>
        }
      />
    </Page>
  );
}

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
  controls: Controls;
  client: string | null;
  traced: Traced;
  url: TraceUrl;
  onOpen: (run: string, seq: number) => void;
}

/** The messages of the requests that pass the filter, of one client of the present run. */
export function ClientLadder({ controls, client, traced, url, onOpen }: ClientLadderProps) {
  const { snapshot, run, state, spans, loading, loader } = traced;
  const { sessions } = snapshot.tables;
  const view = snapshot.trace.runs.at(-1);
  const own = useMemo(() => (state === "ready" && client !== null ? spans.filter((span) => span.run === run) : []), [state, client, spans, run]);
  const entries = useMemo(() => (view === undefined ? [] : entriesOfSpans(view, own)), [view, own]);
  const rows = useMemo(() => own.map(({ row }) => row), [own]);
  const picture = usePicture(entries, rows, clientName(client, sessions));
  const options = clientsOf(sessions)
    .toSorted((a, b) => number(b.id) - number(a.id))
    .map(({ id }) => ({ value: id, label: clientName(id, sessions) }));
  const searching = state === "searching" || loading.busy === "search";
  return (
    <LadderFrame
      key={client}
      controls={controls}
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
      note={searching ? `Reading the log: ${entries.length} entries so far` : state === "ready" && loading.error !== null ? `Not all of the log was read: ${loading.error}` : loading.found?.next != null ? `The newest ${own.length} of ${loading.found.matched} requests` : null}
      empty={
        <EmptyState title={state === "failed" ? "The log could not be read" : searching ? "Reading the log" : url.range === null ? "No message of this client is in the log" : "No message in this time"}>
          {state === "failed" && (
            <>
              <p role="alert">{loading.error}</p>
              <Button onClick={() => loader.again(run)}>Try again</Button>{" "}
            </>
          )}
          {url.range !== null && <Button onClick={() => url.setRange(null)}>Show all of the time</Button>}
        </EmptyState>
      }
    />
  );
}

interface LadderFrameProps {
  controls: Controls;
  title: string;
  /** The name of the file that it is saved as, without its ending. */
  file: string;
  picture: Picture;
  origin?: Step | undefined;
  follow?: boolean;
  /** The selected entry; one that is no step, such as a head of HTTP, selects the step before it. */
  at: number | null;
  onOpen: (seq: number) => void;
  /** What stands before and behind the tools. */
  before?: ReactNode;
  behind?: ReactNode;
  /** What is to be said above the picture. */
  note: string | null;
  /** Stands in place of a picture without steps. */
  empty: ReactNode;
}

const PACES = [
  { value: "", label: "Evenly" },
  { value: "scale", label: "Time to scale" },
];
const LOOKS = [
  { value: "", label: "Picture" },
  { value: "list", label: "List" },
];
const CLOSEST = 8;
const FARTHEST = 1 / 4;
const ALL_FOLDED: ReadonlySet<string> = new Set();

/** A ladder with what it can be read by; all choices are in the address. */
function LadderFrame({ controls, title, file, picture, origin, follow = false, at, onOpen, before, behind, note, empty }: LadderFrameProps) {
  const [paceName, setPace] = useUrlState("time");
  const [zoomText, setZoom] = useUrlState("zoom", "1");
  const [look, setLook] = useUrlState("as");
  const [text, setText] = useUrlState("find");
  const pace: Pace = paceName === "scale" ? "scale" : "even";
  const zoom = Math.min(CLOSEST, Math.max(FARTHEST, Number(zoomText) || 1));
  const step = at === null ? undefined : picture.steps.findLast(({ seq }) => seq <= at);
  const label = `${title}, ${picture.steps.length} steps`;
  const open = ({ seq }: Step) => onOpen(seq);
  return (
    <>
      {!controls.hidden && (
        <div className="strip row">
          {before}
          <Segmented label="Rows" options={PACES} value={paceName} onChange={setPace} />
          <span>
            <Button look="quiet" aria-label="Zoom out" disabled={zoom <= FARTHEST} onClick={() => setZoom(String(zoom / 2))}>
              −
            </Button>
            <Button look="quiet" aria-label="Zoom in" disabled={zoom >= CLOSEST} onClick={() => setZoom(String(zoom * 2))}>
              +
            </Button>
          </span>
          <Segmented label="Shown as" options={LOOKS} value={look} onChange={setLook} />
          <SearchField label="Find in the messages" placeholder="Find" value={text} onChange={setText} />
          <Button disabled={picture.steps.length === 0} onClick={() => downloadSvg(file, { title, picture, origin, layout: layoutOf(rowsOf(picture.steps, ALL_FOLDED), pace, zoom), pace })}>
            Save SVG
          </Button>
          <CopyButton text={() => location.href} label="Copy link" />
          {behind}
        </div>
      )}
      {note !== null && (
        <p className="strip" role="status">
          {note}
        </p>
      )}
      {picture.steps.length === 0 ? (
        empty
      ) : look === "list" ? (
        <StepTable label={label} picture={picture} origin={origin} text={text} selected={step === undefined ? "" : String(step.seq)} onOpen={open} />
      ) : (
        <Ladder picture={picture} label={label} pace={pace} zoom={zoom} text={text} origin={origin} selected={step?.seq ?? null} onOpen={open} follow={follow} />
      )}
      <PrintedLadder title={title} picture={picture} origin={origin} pace={pace} zoom={zoom} />
    </>
  );
}

const says = (row: Row) => <code>{labelOf(row).rest}</code>;

interface StepTableProps {
  label: string;
  picture: Picture;
  origin: Step | undefined;
  /** Only steps with it are listed. */
  text: string;
  selected: string;
  onOpen: (step: Step) => void;
}

/** The same as the picture, in words, with nothing folded. */
function StepTable({ label, picture, origin, text, selected, onOpen }: StepTableProps) {
  const { steps, names } = picture;
  const rows = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const all = rowsOf(
      steps.map((step) => ({ ...step, fold: null })),
      new Set(),
    );
    return wanted === "" ? all : all.filter((row) => hasText(row, wanted));
  }, [steps, text]);
  const columns = useMemo((): readonly Column<Row>[] => {
    const name = (lane: Step["from"]) => names.get(lane) ?? lane;
    return [
      { key: "time", head: "When", width: "6.5rem", align: "end", cell: (row) => timeOf(row, origin) },
      { key: "from", head: "From", width: "minmax(6rem, 10rem)", cell: ({ steps: [step] }) => name(step.from) },
      { key: "to", head: "To", width: "minmax(6rem, 10rem)", cell: ({ steps: [step] }) => (step.from === step.to ? "–" : name(step.to)) },
      { key: "what", head: "What", width: "minmax(10rem, 16rem)", cell: (row) => labelOf(row).title },
      { key: "rest", head: "Says", width: "minmax(14rem, 1fr)", cell: says },
    ];
  }, [names, origin]);
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={rows}
      rowKey={(row) => row.key}
      selected={selected}
      onSelect={(row) => onOpen(row.steps[0])}
      empty={<EmptyState title="No step has this text" />}
    />
  );
}
