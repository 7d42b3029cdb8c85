import { KeyValues } from "~/ui/key-values";

const WORDS: readonly (readonly [string, string])[] = [
  ["emitted", "The server made a message. Nothing is said yet of whether it left."],
  ["delivered", "A socket took the message. Emitted and never delivered: nobody was reading, or reading stopped."],
  ["coalesced", "Progress that came too fast and was merged into the next report; the last report is never lost."],
  ["queued", "A task was made and its work has not begun. A word of this server's own: the client is told working."],
  ["outcome", "How a call ended: completed, tool error (a result with isError), protocol error (a JSON-RPC error), cancelled, timed out, disconnected, input required (2026-07-28: the answer asks for more, and the client calls again), or lost (it ran when an earlier server died)."],
  ["done", "The work came to its own end. A cancelled call is never done, whatever progress it had made."],
  ["cancelled by", "What asked the work to stop: notification (notifications/cancelled), disconnect (2026-07-28 over HTTP: the response was closed; on a WebSocket or standard streams: the connection ended; or its draft stream was lost), tasks_cancel, deadline, ttl (the task's time to live), session_end, shutdown."],
  ["latency, scope exit", "The time from the moment of cancellation until all of the work had stopped."],
  ["answered", "A response was sent. After a cancellation there must be none."],
  ["session s7, m7", "s7 is a session of the legacy era. m7 stands for one modern client (address, name, version), whose requests have no session. Neither is the session id, which is secret."],
  ["era", "legacy: 2025-03-26, 2025-06-18 and 2025-11-25, with initialize and sessions. modern: 2026-07-28, where each request says everything."],
  ["exchange", "One HTTP request with its response; on a WebSocket and on standard streams one message of the client with what answers it."],
  ["connection w5, i1", "A WebSocket, or the standard input and output of a process: one connection that carries all messages both ways. Its number is that of the HTTP request that became it, and the exchange that delivers what is sent on it."],
  ["connection h3", "A tool host: another process that offers tools through this server, on a WebSocket of its own."],
  ["dispatch", "A synchronous tool call as its tool sees it, with two deadlines: idle, moved by each valid progress report, and a ceiling that nothing moves. d7 is the name of one at its tool host."],
  ["in flight", "Dispatches that take a place at a tool host: until they are settled, and of those that were cancelled until the host says that the work has stopped."],
  ["late", "What a tool host said of a dispatch that was over. It goes nowhere and is counted."],
  ["stream", "Messages in order for one request (response), for a session (standalone) or for subscriptions/listen (subscription); over HTTP as server-sent events, which in the legacy era can outlive their connection and be resumed. One of the draft extension (resumable) outlives its connection on every transport."],
  ["waiting", "Emitted and not yet delivered: what a stream has for a reader that is away or slow."],
  ["lost", "A stream of the draft extension whose client can never have all of it: abandoned (nobody came back in time), overflow (more waited than may), session ended, or server full. Of a call: it ran when an earlier server died."],
  ["because of", "The entry because of which another one happened: of an answer its request, of a delivery the first message that was delivered, of what a call sends the start of the call."],
  ["label", "The name that a client was given in its address, /mcp?client=NAME, or by MCP_PROBE_CLIENT on standard streams."],
  ["id 5, id \"5\"", "A number and a string; they are different ids. Ids and progress tokens are shown as they are in JSON."],
  ["misuse", "The client did what its revision forbids, or what cannot have an effect, and the server noted it as it came. The clause names the rule. Where the server judges, each misuse is a finding or behind one."],
  ["finding", "A rule that a client broke: failed or warned. It names the rule, its sentence and the entries that it rests on."],
  ["failed (FAIL)", "A MUST was broken, and the evidence is certain."],
  ["warned (WARN)", "A SHOULD was broken, or what robust programs do; or a MUST, seen only indirectly."],
  ["inconclusive (INCONCLUSIVE)", "An opportunity for the rule came, and the log cannot decide."],
  ["passed (PASS)", "Every opportunity that came was taken."],
  ["not observed (NOT_OBSERVED)", "No opportunity came. It is never a good sign, and never green; the report says what to try."],
  ["gap", "Entries that this page did not get: evicted (pushed out of the log), skipped (too many at once; they can be loaded), restarted (another run of the server)."],
  ["run", "One life of the server. Numbers of entries and calls begin anew with each."],
];

/** The words that the pages use, and exactly what they mean. */
export function Words() {
  return <KeyValues items={WORDS} />;
}
