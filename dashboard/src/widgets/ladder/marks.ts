import type { CallSettled, Entry } from "~/protocol/schema";
import type { Tone } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { counted } from "~/words/counted";
import { list, quoted } from "~/words/message-summary";
import { stateOf } from "~/words/states";
import { summaryOf } from "~/words/summary";
import type { HostNames } from "./host-names";

/** What happened on one lane. `sender`: bytes from the client to the server that are no message. */
export interface Mark {
  lane: "client" | "probe" | `host ${string}` | "sender";
  title: string;
  text: string;
  tone: Tone;
  /** As that of a step. */
  fold?: string;
}

/** What an entry that is no message tells on the ladder; null for what other steps and bars tell already. */
export function markOf(entry: Entry, hosts: HostNames): Mark | null {
  return ofWork(entry) ?? ofHost(entry, hosts) ?? ofCarrier(entry) ?? ofTheRest(entry);
}

function ofWork(entry: Entry): Mark | null {
  switch (entry.kind) {
    case "call.progressed":
      return { lane: "probe", title: "progress", text: summaryOf(entry, null).text, tone: "neutral", fold: `${entry.call} progressed` };
    case "call.cancelled":
      if (!entry.effect) return { lane: "probe", title: `cancelled by ${entry.by}`, text: "without effect: it was over already", tone: "neutral" };
      return { lane: "probe", title: `cancelled by ${entry.by}`, text: quoted(entry.reason) ?? "", tone: "warn" };
    case "call.settled":
      return entry.cancelled_by === null ? null : { lane: "probe", title: "work stopped", text: stopped(entry), tone: entry.sent_after_cancel > 0 ? "bad" : "warn" };
    case "dispatch.expired":
      return { lane: "probe", title: `${entry.deadline} deadline passed`, text: summaryOf(entry, null).text, tone: "bad" };
    case "task.changed":
      return { lane: "probe", title: `task ${stateOf(entry.status).label}`, text: list(quoted(entry.message)), tone: stateOf(entry.status).tone };
    case "limit.reached":
      return { lane: "probe", title: `limit ${entry.limit}`, text: `at ${entry.value}`, tone: "bad" };
    default:
      return null;
  }
}

function stopped({ scope_exit_ms: exit, sent_after_cancel: sent }: CallSettled): string {
  const after = sent === 0 ? "nothing sent afterwards" : `${counted(sent, "message")} sent afterwards`;
  return list(exit !== null && `${formatDuration(exit)} later`, after);
}

// of these the answer of the host tells
const TOLD = new Set(["acknowledged", "answered"]);

function ofHost(entry: Entry, hosts: HostNames): Mark | null {
  switch (entry.kind) {
    case "dispatch.stopped":
      return TOLD.has(entry.how) ? null : { lane: hosts.laneOf(entry), title: stateOf(entry.how).label, text: summaryOf(entry, null).text, tone: "warn" };
    case "dispatch.late":
      return { lane: hosts.laneOf(entry), title: "late", text: summaryOf(entry, null).text, tone: "warn" };
    case "host.closed":
      return { lane: hosts.laneOf(entry), title: "tool host gone", text: summaryOf(entry, null).text, tone: entry.failed > 0 ? "bad" : "neutral" };
    default:
      return null;
  }
}

function ofCarrier(entry: Entry): Mark | null {
  switch (entry.kind) {
    case "http.closed":
      if (entry.by === "end of stream") return null;
      return { lane: "client", title: `response closed by ${entry.by}`, text: list(`exchange ${entry.exchange}`, counted(entry.messages, "message")), tone: "warn" };
    case "connection.closed":
      return { lane: "client", title: `connection closed by ${entry.by}`, text: summaryOf(entry, null).text, tone: "warn" };
    case "session.closed":
      return { lane: "probe", title: "session closed", text: entry.why, tone: "neutral" };
    case "stream.resumed":
      return { lane: "client", title: "stream resumed", text: summaryOf(entry, null).text, tone: "info" };
    case "stream.lost":
      return { lane: "probe", title: `stream lost: ${entry.why}`, text: summaryOf(entry, null).text, tone: "bad" };
    default:
      return null;
  }
}

function ofTheRest(entry: Entry): Mark | null {
  switch (entry.kind) {
    case "message.unreadable":
      return { lane: "sender", title: "unreadable", text: list(entry.fault, entry.problem, entry.head), tone: "bad" };
    case "client.misuse":
      return { lane: "client", title: `violation: ${entry.what}`, text: list(entry.detail, entry.clause), tone: "bad" };
    default:
      return null;
  }
}
