import { KeyValues } from "~/ui/key-values";

const WORDS: readonly (readonly [string, string])[] = [
  ["sent", "The server made a message and handed it to a stream or a response. The API calls it emitted."],
  ["received", "A socket of the client took the message. Sent and not received: no reader was connected, or it stopped reading. The API calls it delivered."],
  ["coalesced", "Progress that came too fast and was merged into the next report. The last report is never lost."],
  ["queued", "A task exists and its work has not begun. This is a word of this server: the client gets working."],
  ["outcome", "How a call ended: completed, tool error (a result with isError), protocol error (a JSON-RPC error), cancelled, timed out, disconnected, input required (2026-07-28: the answer asks for more, and the client calls again), or lost (it ran when an earlier server died)."],
  ["done", "The work came to its own end. A cancelled call is never done, whatever progress it had made."],
  ["cancelled by", "What asked the work to stop: notification (notifications/cancelled), disconnect (2026-07-28 over HTTP: the response was closed; on a WebSocket or standard streams: the connection ended; or its draft stream was lost), tasks_cancel, deadline, ttl (the time to live of the task), session_end, shutdown."],
  ["latency", "The time from the cancellation until all of the work had stopped."],
  ["answered", "A response was sent. After a cancellation there must be none."],
  ["protocol 2025, protocol 2026", "2025: the revisions 2025-03-26, 2025-06-18 and 2025-11-25, with initialize and sessions; the API calls it legacy. 2026: the revision 2026-07-28, in which each request stands alone; the API calls it modern."],
  ["session s7, client m7", "s7 is a session of protocol 2025. m7 is one client of protocol 2026 (address, name, version), whose requests have no session. Neither is the session id, which is secret."],
  ["request", "One HTTP request with its response; on a WebSocket and on standard streams one message of the client with its answer. The API calls it an exchange."],
  ["connection w5, i1", "A WebSocket, or the standard input and output of a process: one connection that carries all messages both ways. Its number is that of the HTTP request that became it."],
  ["connection h3", "A tool host: another process that offers tools through this server, on a WebSocket of its own."],
  ["dispatch", "A synchronous tool call with two deadlines: idle, which each valid progress report moves, and a ceiling, which nothing moves. d7 is its name at its tool host."],
  ["in flight", "Dispatches that take a place at a tool host: until they are settled; of those that were cancelled, until the host reports that the work has stopped."],
  ["late", "A message of a tool host about a dispatch that was over. It is dropped and counted."],
  ["stream", "Messages in order for one request (response), for a session (standalone) or for subscriptions/listen (subscription). Over HTTP they are server-sent events, which in protocol 2025 can outlive their connection and be resumed. One of the draft extension (resumable) outlives its connection on every transport."],
  ["waiting", "Sent and not yet received: what a stream keeps for a reader that is away or slow."],
  ["lost", "A stream of the draft extension whose client can never have all of it: abandoned (no reader came back in time), overflow (more waited than may), session ended, or server full. Of a call: it ran when an earlier server died."],
  ["because of", "The entry that caused another one: of an answer its request, of a delivery the first message of it, of what a call sends the start of the call."],
  ["label", "The name that a client was given in its address, /mcp?client=NAME, or by MCP_PROBE_CLIENT on standard streams."],
  ["id 5, id \"5\"", "A number and a string; they are different ids. Ids and progress tokens are shown as they are in JSON."],
  ["violation", "The client did what its revision forbids, or what cannot have an effect, and the server noted it. The clause names the rule. Each is a finding of the judge, or behind one. The API calls it misuse."],
  ["tool errors (expected)", "Errors that a tool gave as it was asked to: simulated ones, wrong arguments, tasks that fail. They are no fault of the client."],
  ["finding", "A rule that a client broke: failed or warned. It has what was found and expected, the sentence of the specification, and the entries that show it."],
  ["failed (FAIL)", "A MUST was broken, and the evidence is certain."],
  ["warned (WARN)", "A SHOULD was broken, or what robust programs do; or a MUST, seen only indirectly."],
  ["inconclusive (INCONCLUSIVE)", "The rule was exercised, and the log does not contain enough to decide."],
  ["passed (PASS)", "The rule was kept each time it was exercised."],
  ["not observed (NOT_OBSERVED)", "Never exercised, so there is no verdict. The page of the client lists what to try."],
  ["gap", "Entries that this page did not get: evicted (dropped from the log), skipped (too many at once; they can be loaded), restarted (another run of the server)."],
  ["run", "One life of the server. Numbers of entries and calls begin anew with each."],
];

/** The words that the pages use, and exactly what they mean. */
export function Words() {
  return <KeyValues items={WORDS} />;
}
