import { at } from "~/protocol/json";
import type { Entry, ExchangeRow } from "~/protocol/schema";
import type { Of, Viewed } from "~/trace/entry";
import { isAnswer, isMessage, progressOf } from "~/trace/facts";

const IN = new Set(["http.request", "message.received"]);
const OUT = new Set(["http.response", "message.emitted", "message.delivered", "message.dropped"]);
const ON_WIRE = /^(http|message|request|host\.message|connection|client\.misuse|limit)/;

/** Entries as a server gives them with `view=1`, as far as tests need that. They are of one run, in their order. */
export function withViews(entries: readonly Entry[]): Viewed[] {
  const bySeq = new Map<number, Viewed>();
  return entries.map((entry) => {
    const cause = entry.cause === null ? undefined : bySeq.get(entry.cause);
    const asked = isAnswer(entry) && cause !== undefined && isMessage(cause) ? cause : undefined;
    const said: Entry = asked ?? entry;
    const delivers = entry.kind === "message.delivered" ? [...bySeq.values()].filter((sent) => isTaken(sent, entry)) : [];
    for (const sent of delivers) sent.view.delivered = { seq: entry.seq, at: entry.at, mono: entry.mono };
    const viewed: Viewed = {
      ...entry,
      view: {
        exchange: entry.exchange ?? -(asked?.seq ?? entry.seq),
        on_wire: ON_WIRE.test(entry.kind) && entry.kind !== "message.delivered",
        group: "server",
        problem: null,
        direction: IN.has(entry.kind) ? "in" : OUT.has(entry.kind) ? "out" : entry.kind === "host.message" ? (entry.direction === "received" ? "in" : "out") : null,
        method: entry.kind === "call.started" || isMessage(said) ? ((said as { method: string | null }).method) : null,
        delivered: null,
        delivers: delivers.map(({ seq }) => seq),
        passes: null,
      },
    };
    bySeq.set(entry.seq, viewed);
    return viewed;
  });
}

function isTaken(sent: Viewed, { session, stream, exchange, first, last, cause }: Extract<Entry, { kind: "message.delivered" }>): boolean {
  if (sent.kind !== "message.emitted" || sent.view.delivered !== null || sent.session !== session || sent.stream !== stream) return false;
  return sent.position === null ? sent.exchange === exchange || sent.seq === cause : first <= sent.position && sent.position <= last;
}

const moment = (entry: Viewed | undefined) => (entry === undefined ? null : { seq: entry.seq, at: entry.at, mono: entry.mono });

/** The rows of the exchanges of some entries; `more` says what a test wants to be different, by exchange. */
export function rowsOf(entries: readonly Viewed[], more: Readonly<Record<number, Partial<ExchangeRow>>> = {}): ExchangeRow[] {
  const groups = Map.groupBy(entries, ({ view }) => view.exchange);
  return [...groups].map(([exchange, own]) => Object.assign(rowOf(exchange, own), more[exchange]));
}

function rowOf(exchange: number, own: readonly Viewed[]): ExchangeRow {
  const find = <Kind extends Entry["kind"]>(kind: Kind) => own.find((entry) => entry.kind === kind) as Of<Kind> | undefined;
  const [http, response, started, settled, misuse] = [find("http.request"), find("http.response"), find("call.started"), find("call.settled"), find("client.misuse")];
  const head = own.find((entry) => isMessage(entry)) ?? http ?? own[0];
  if (head === undefined) throw new Error("an exchange has an entry");
  const answer = own.find((entry) => isAnswer(entry) && entry !== head);
  const ended = find("http.closed") ?? (answer?.view.delivered == null ? answer : own.find(({ seq }) => seq === answer.view.delivered?.seq));
  const began = own[0] ?? head;
  const state = settled?.outcome ?? (answer !== undefined ? (isMessage(answer) && answer.rpc === "error" ? "error" : "answered") : misuse !== undefined ? "misuse" : started !== undefined ? "running" : "rpc" in head && head.rpc === "request" ? "waiting" : "done");
  return {
    id: String(exchange),
    exchange,
    began: { seq: began.seq, at: began.at, mono: began.mono },
    head: head.seq,
    on_wire: own.some(({ view }) => view.on_wire),
    transport: http === undefined ? null : "http",
    request: http === undefined ? null : `${http.method} ${http.path}`,
    unreadable: find("message.unreadable")?.fault ?? null,
    method: "rpc" in head ? head.method : null,
    target: started?.tool ?? "",
    session: own.find(({ session }) => session !== null)?.session ?? null,
    label: own.find(({ label }) => label !== null)?.label ?? null,
    call: started?.call ?? null,
    tool: started?.tool ?? null,
    status: response?.status ?? null,
    refusal: null,
    misuse: misuse?.what ?? null,
    answer: answer?.seq ?? null,
    delivered: answer?.view.delivered ?? null,
    progress: own.filter((entry) => progressOf(entry) !== null).length,
    dropped: 0,
    ended: moment(ended),
    duration_ms: ended === undefined ? null : Math.round((ended.mono - began.mono) * 1e6) / 1e3,
    work: started === undefined ? null : { task: started.task, began: { seq: started.seq, at: started.at, mono: started.mono }, cancelled: moment(find("call.cancelled")), ended: moment(settled) },
    ending: { state: state as ExchangeRow["ending"]["state"], by: settled?.cancelled_by ?? null, steps: null, steps_total: null, stopped_ms: null, sent_after: 0, code: state === "error" && answer !== undefined && "message" in answer ? Number(at(answer.message, "error", "code")) : null, detail: null, text: misuse === undefined ? "" : `${misuse.what}: ${misuse.detail}` },
    passes: null,
  };
}

/** What a call rests on, as its page gets it; `text` is what the server says of its end. */
export function evidenceOf(entries: readonly Entry[], text = "", complete = true) {
  const events = withViews(entries);
  const exchanges = rowsOf(events).map((row) => Object.assign(row, { call: "c1", ending: { ...row.ending, text } }));
  return { complete, events, exchanges };
}
