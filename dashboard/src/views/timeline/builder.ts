import { scalarText } from "~/protocol/json";
import type { Entry, MessageEmitted } from "~/protocol/schema";
import { messagesOf, pipeOf } from "~/trace/evidence";
import { shareText } from "~/words/share";
import { type Lane, TERMINAL, type Tick } from "./lane";

const EXCHANGE = "exchange ";

type Of<Kind extends Entry["kind"]> = Extract<Entry, { kind: Kind }>;

/** Puts the lanes together, entry by entry. Everything is found by run and by the server's own names, never by request id. */
export class Builder {
  readonly lanes = new Map<string, Lane>();
  // the messages of the run, by the numbers of their entries
  #emitted = new Map<number, { entry: MessageEmitted; tick: Tick }>();
  #run = "";

  take(run: string, entry: Entry): void {
    if (run !== this.#run) this.#emitted = new Map();
    this.#run = run;
    switch (entry.kind) {
      case "call.started": return this.#started(entry);
      case "call.cancelled": return this.#cancelled(entry);
      case "call.settled": return this.#settled(entry);
      case "call.progressed": return this.#progressed(entry);
      case "task.changed": return this.#taskChanged(entry);
      case "task.removed": return this.#fact(this.#task(entry.task), { Removed: entry.why });
      case "stream.opened": return this.#streamOpened(entry);
      case "stream.ended": return this.#streamOver(entry, "ended");
      case "stream.lost": return this.#streamOver(entry, "lost");
      case "stream.resumed": return this.#resumed(entry);
      case "connection.closed": return this.#disconnected(entry);
      case "http.response": return this.#read(entry);
      case "http.closed": return this.#left(entry);
      case "message.emitted": return this.#made(entry);
      case "message.delivered": return this.#delivered(entry);
      default: return undefined;
    }
  }

  #call(id: string | null): Lane | undefined {
    return this.lanes.get(`${this.#run}/call/${id}`);
  }

  #task(id: string | null): Lane | undefined {
    return this.lanes.get(`${this.#run}/task/${id}`);
  }

  #stream({ session, stream }: { session: string | null; stream: string | null }): Lane | undefined {
    return this.lanes.get(`${this.#run}/stream/${session}/${stream}`);
  }

  #fact(lane: Lane | undefined, facts: Readonly<Record<string, string>>): void {
    if (lane !== undefined) lane.facts = { ...lane.facts, ...facts };
  }

  #started(entry: Of<"call.started">): void {
    const { tool, method, session, at, seq } = entry;
    const call = entry.call ?? "";
    const facts = {
      Method: method,
      "Request id": scalarText(entry.request_id),
      "Progress token": entry.progress_token === null ? "none" : scalarText(entry.progress_token),
      ...(entry.task !== null && { Task: entry.task }),
    };
    const href = tool === null ? `/live?at=${seq}` : `/calls/${this.#run}.${call}`;
    this.#add({ key: `${this.#run}/call/${call}`, kind: "call", session, id: call, name: tool ?? method, href, from: at, state: "running", facts });
  }

  #add(lane: Omit<Lane, "to" | "cancelled" | "ticks" | "phases">): Lane {
    const whole: Lane = { ...lane, to: null, cancelled: null, ticks: [], phases: [] };
    this.lanes.set(lane.key, whole);
    return whole;
  }

  #cancelled({ call, task, at, by, reason, effect }: Of<"call.cancelled">): void {
    if (!effect) return;
    for (const lane of [this.#call(call), this.#task(task)]) {
      if (lane !== undefined) lane.cancelled ??= { at, by, reason };
    }
  }

  #settled(entry: Of<"call.settled">): void {
    const { steps_done: done, steps_total: total, scope_exit_ms: exit } = entry;
    const facts = {
      ...(done !== null && { Steps: shareText(done, total) }),
      ...(exit !== null && { "Scope exit": `${exit} ms after the cancellation`, "Sent after it": String(entry.sent_after_cancel) }),
      Answered: entry.answered ? "yes" : "no",
    };
    const lane = this.#call(entry.call);
    this.#fact(lane, facts);
    if (lane !== undefined) Object.assign(lane, { to: entry.at, state: entry.outcome });
    const task = this.#task(entry.task);
    this.#fact(task, facts);
    if (task !== undefined && task.to !== null) task.to = Math.max(task.to, entry.at);
  }

  #progressed({ call, task, at, progress, total, message }: Of<"call.progressed">): void {
    const tick: Tick = { what: "unheard", at, delivered: null, label: `${progressText(progress, total, message)}, no token` };
    this.#call(call)?.ticks.push(tick);
    this.#task(task)?.ticks.push(tick);
  }

  #taskChanged(entry: Of<"task.changed">): void {
    const { session, tool, at, status, message } = entry;
    const task = entry.task ?? "";
    const lane =
      this.#task(task) ??
      this.#add({ key: `${this.#run}/task/${task}`, kind: "task", session, id: task, name: tool, href: `/calls/tasks/${task}`, from: at, state: status, facts: {} });
    const last = lane.phases.at(-1);
    lane.state = status;
    // the same status with another message goes on
    if (last?.status !== status) {
      if (last !== undefined) last.to = at;
      if (TERMINAL.has(status)) lane.to = at;
      else lane.phases.push({ from: at, to: null, status, note: "" });
    }
    if (message !== null) this.#fact(lane, { Message: message });
  }

  #streamOpened(entry: Of<"stream.opened">): void {
    const { session, at, purpose, exchange } = entry;
    const stream = entry.stream ?? "";
    const query = new URLSearchParams({ ...(session !== null && { session }), stream });
    const key = `${this.#run}/stream/${session}/${stream}`;
    const facts = exchange === null ? {} : { Exchange: String(exchange) };
    const lane = this.#add({ key, kind: "stream", session, id: stream, name: purpose, href: `/live?${query}`, from: at, state: "open", facts });
    const pipe = pipeOf(entry);
    if (pipe !== null) lane.phases.push({ from: at, to: null, status: "connected", note: pipe });
  }

  #streamOver(entry: Of<"stream.ended"> | Of<"stream.lost">, state: "ended" | "lost"): void {
    const lane = this.#stream(entry);
    // what is lost is told before it ends
    if (lane === undefined || lane.state === "lost") return;
    const lost = entry.kind === "stream.lost" ? { Lost: `${entry.why}, ${entry.messages} never sent` } : {};
    Object.assign(lane, { to: Math.min(lane.to ?? entry.at, entry.at), state, facts: { ...lane.facts, ...lost } });
    // of a response, its own end tells
    const phase = lane.phases.at(-1);
    if (phase !== undefined && !phase.note.startsWith(EXCHANGE)) phase.to ??= entry.at;
  }

  #read(entry: Of<"http.response">): void {
    if (entry.stream === null || entry.content_type !== "text/event-stream") return;
    const note = `${EXCHANGE}${entry.exchange}`;
    const lane = this.#stream(entry);
    const last = lane?.phases.at(-1);
    // unless its resumption has told so
    if (last?.note !== note || last.to !== null) lane?.phases.push({ from: entry.at, to: null, status: "connected", note });
  }

  #resumed(entry: Of<"stream.resumed">): void {
    const lane = this.#stream(entry);
    const last = lane?.phases.at(-1);
    if (last !== undefined) last.to ??= entry.at;
    const note = pipeOf(entry) ?? `${EXCHANGE}${entry.exchange}`;
    lane?.phases.push({ from: entry.at, to: null, status: "connected", note });
  }

  #disconnected({ connection, at, by }: Of<"connection.closed">): void {
    for (const lane of this.lanes.values()) {
      const phase = lane.kind === "stream" && lane.key.startsWith(`${this.#run}/`) ? lane.phases.at(-1) : undefined;
      if (phase?.note !== connection || phase.to !== null) continue;
      phase.to = at;
      phase.note += `, closed by ${by}`;
    }
  }

  #left(entry: Of<"http.closed">): void {
    const phase = this.#stream(entry)?.phases.findLast((each) => each.note === `${EXCHANGE}${entry.exchange}`);
    if (phase === undefined) return;
    phase.to = entry.at;
    phase.note += `, closed by ${entry.by}`;
  }

  #made(entry: MessageEmitted): void {
    const tick: Tick = { what: kindOf(entry), at: entry.at, delivered: null, label: labelOf(entry) };
    for (const lane of [this.#call(entry.call), this.#task(entry.task), entry.stream === null ? undefined : this.#stream(entry)]) {
      lane?.ticks.push(tick);
    }
    this.#emitted.set(entry.seq, { entry, tick });
  }

  #delivered(entry: Of<"message.delivered">): void {
    for (const { seq } of messagesOf(entry, (each) => this.#emitted.get(each)?.entry)) {
      const tick = this.#emitted.get(seq)?.tick;
      if (tick !== undefined) tick.delivered ??= entry.at;
    }
  }
}

function kindOf({ rpc, method }: MessageEmitted): Tick["what"] {
  if (method === "notifications/progress") return "progress";
  if (rpc === "request") return "request";
  return rpc === "notification" ? "message" : "answer";
}

function progressText(progress: unknown, total: unknown, message: unknown): string {
  const share = total === null || total === undefined ? String(progress) : `${String(progress)} of ${String(total)}`;
  return `progress ${share}${typeof message === "string" ? ` “${message}”` : ""}`;
}

function labelOf({ rpc, method, message }: MessageEmitted): string {
  if (method !== "notifications/progress") return method ?? rpc;
  const { params } = message as { params?: { progress?: unknown; total?: unknown; message?: unknown } };
  return progressText(params?.progress, params?.total, params?.message);
}
