import type { Tone } from "~/ui/badge";

export interface State {
  label: string;
  tone: Tone;
}

const state = (label: string, tone: Tone): State => ({ label, tone });

/** The words of the event log, the audit and the protocol that are a state, and how each looks everywhere. */
const STATES: Readonly<Record<string, State>> = {
  // calls
  running: state("running", "info"),
  completed: state("completed", "good"),
  tool_error: state("tool error", "bad"),
  protocol_error: state("protocol error", "bad"),
  cancelled: state("cancelled", "violet"),
  timed_out: state("timed out", "bad"),
  disconnected: state("disconnected", "warn"),
  input_required: state("input required", "violet"),
  lost: state("lost", "bad"),
  // exchanges without a call
  error: state("error", "bad"),
  refused: state("refused", "bad"),
  misuse: state("noted", "warn"),
  answered: state("answered", "good"),
  dropped: state("not sent", "neutral"),
  waiting: state("no answer yet", "neutral"),
  unanswered: state("no answer", "warn"),
  done: state("done", "neutral"),
  // of these and of calls, in a saved file
  open_at_end: state("open at the end", "neutral"),
  // tasks
  queued: state("queued", "neutral"),
  working: state("working", "info"),
  failed: state("failed", "bad"),
  removed: state("removed", "neutral"),
  expired: state("expired", "neutral"),
  // sessions and streams
  open: state("open", "good"),
  ended: state("ended", "neutral"),
  deleted: state("deleted", "neutral"),
  idle: state("idle", "neutral"),
  shutdown: state("shutdown", "neutral"),
  abandoned: state("abandoned", "bad"),
  overflow: state("overflow", "bad"),
  // tool hosts
  connected: state("connected", "info"),
  registered: state("registered", "good"),
  // the feed
  connecting: state("connecting", "info"),
  live: state("live", "good"),
  stale: state("disconnected", "warn"),
  closed: state("closed", "neutral"),
  // the server and its audit file
  ready: state("ready", "good"),
  draining: state("draining", "warn"),
  stopped: state("stopped", "neutral"),
  ok: state("ok", "good"),
  failing: state("failing", "bad"),
  // messages
  request: state("request", "info"),
  notification: state("notification", "neutral"),
  response: state("response", "good"),
  invalid: state("invalid", "bad"),
};

const STILL_OPEN = new Set(["running", "waiting", "open"]);

/** The state of a request, call or session as its log shows it: nothing goes on in a log that has ended. */
export const stateIn = (name: string, ended: boolean): string => (ended && STILL_OPEN.has(name) ? "open_at_end" : name);

/** How a state looks; one that this table does not know is shown by its own name. */
export function stateOf(name: string): State {
  return (Object.hasOwn(STATES, name) ? STATES[name] : undefined) ?? state(name.replaceAll("_", " "), "neutral");
}
