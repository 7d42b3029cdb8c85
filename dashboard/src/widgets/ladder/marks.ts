import type { Entry, ExchangeRow } from "~/protocol/schema";
import type { Tone } from "~/ui/badge";
import { counted } from "~/words/counted";
import { list, quoted } from "~/words/message-summary";
import { causeOf, stateOf } from "~/words/states";
import { summaryOf } from "~/words/summary";

type HostLane = `host ${string}`;

/** What happened on one lane. `sender`: bytes from the client to the server that are no message. */
export interface Mark {
  lane: "client" | "probe" | HostLane | "sender";
  title: string;
  text: string;
  tone: Tone;
  /** As that of a step. */
  fold?: string;
}

/** The names of tool hosts by their connections, as the entries tell them. */
export class HostNames {
  readonly #names = new Map<string, string>();

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      const host = "host" in entry ? entry.host : null;
      if (host !== null && entry.connection !== null) this.#names.set(entry.connection, host);
    }
  }

  /** The lane of the host that an entry is about; by its connection where no entry names it. */
  laneOf(entry: Entry): HostLane {
    const own = "host" in entry ? entry.host : null;
    return `host ${own ?? this.#names.get(entry.connection ?? "") ?? entry.connection ?? "?"}`;
  }
}

/** What an entry that is no message tells on the ladder; null for what other steps and bars tell already. `row` is that of its exchange. */
export function markOf(entry: Entry, hosts: HostNames, row: ExchangeRow | undefined): Mark | null {
  // most entries are no mark
  const text = () => summaryOf(entry, null).text;
  switch (entry.kind) {
    case "call.progressed":
      return { lane: "probe", title: "progress", text: text(), tone: "neutral", fold: `${entry.call} progressed` };
    case "call.cancelled":
      return entry.effect ? { lane: "probe", title: `cancelled by ${causeOf(entry.by)}`, text: quoted(entry.reason) ?? "", tone: "warn" } : { lane: "probe", title: `cancelled by ${causeOf(entry.by)}`, text: "without effect: it was over already", tone: "neutral" };
    case "call.settled":
      if (entry.cancelled_by === null) return null;
      return { lane: "probe", title: "work stopped", text: row?.call === entry.call ? row.ending.text : text(), tone: entry.sent_after_cancel > 0 ? "bad" : "warn" };
    case "dispatch.expired":
      return { lane: "probe", title: `${entry.deadline} deadline passed`, text: text(), tone: "bad" };
    case "task.changed":
      return { lane: "probe", title: `task ${stateOf(entry.status).label}`, text: list(quoted(entry.message)), tone: stateOf(entry.status).tone };
    case "limit.reached":
      return { lane: "probe", title: `limit ${entry.limit}`, text: text(), tone: "bad" };
    case "message.unreadable":
      return { lane: "sender", title: "unreadable", text: list(entry.fault, entry.problem, entry.head), tone: "bad" };
    case "client.misuse":
      return { lane: "client", title: `violation: ${entry.what}`, text: list(entry.detail, entry.clause), tone: "bad" };
    default:
      return ofHost(entry, hosts, text) ?? ofCarrier(entry, text);
  }
}

// of these the answer of the host tells
const TOLD = new Set(["acknowledged", "answered"]);

function ofHost(entry: Entry, hosts: HostNames, text: () => string): Mark | null {
  switch (entry.kind) {
    case "dispatch.stopped":
      return TOLD.has(entry.how) ? null : { lane: hosts.laneOf(entry), title: stateOf(entry.how).label, text: text(), tone: "warn" };
    case "dispatch.late":
      return { lane: hosts.laneOf(entry), title: "late", text: text(), tone: "warn" };
    case "host.closed":
      return { lane: hosts.laneOf(entry), title: "tool host gone", text: text(), tone: entry.failed > 0 ? "bad" : "neutral" };
    default:
      return null;
  }
}

function ofCarrier(entry: Entry, text: () => string): Mark | null {
  switch (entry.kind) {
    case "http.closed":
      return entry.by === "end of stream" ? null : { lane: "client", title: `response closed by ${entry.by}`, text: counted(entry.messages, "message"), tone: "warn" };
    case "connection.closed":
      return { lane: "client", title: `connection closed by ${entry.by}`, text: text(), tone: "warn" };
    case "session.closed":
      return { lane: "probe", title: "session closed", text: entry.why, tone: "neutral" };
    case "stream.resumed":
      return { lane: "client", title: "stream resumed", text: text(), tone: "info" };
    case "stream.lost":
      return { lane: "probe", title: `stream lost: ${entry.why}`, text: text(), tone: "bad" };
    default:
      return null;
  }
}
