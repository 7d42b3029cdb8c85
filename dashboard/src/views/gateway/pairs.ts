import type { GatewayEntry, GatewayExchange, GatewayFinding, GatewayReport, GatewayTrial } from "~/protocol/schema";

/** One step, done once on each way; a way on which it was not done is undefined. */
export interface Pair {
  step: string;
  turn: number;
  direct: GatewayTrial | undefined;
  through: GatewayTrial | undefined;
}

export const WAYS = ["direct", "through"] as const;
export type Way = (typeof WAYS)[number];

/** What a way is called on the page. */
export const WAY_NAMES: Readonly<Record<Way, string>> = { direct: "Without the gateway", through: "Through the gateway" };

function paired(trials: readonly GatewayTrial[]): readonly Pair[] {
  const pairs = new Map<string, Pair>();
  for (const trial of trials) {
    const key = `${trial.turn} ${trial.step}`;
    const pair = pairs.get(key) ?? { step: trial.step, turn: trial.turn, direct: undefined, through: undefined };
    pairs.set(key, { ...pair, [trial.way]: trial });
  }
  return [...pairs.values()];
}

/** The trials that a finding rests on, those of both ways side by side. */
export function pairsOf(finding: GatewayFinding, { trials }: GatewayReport): readonly Pair[] {
  return paired(finding.trials.map((index) => trials[index]).filter((trial) => trial !== undefined));
}

/** One pair by its name; undefined where the run has none. */
export function pairOf(step: string, turn: number, { trials }: GatewayReport): Pair | undefined {
  return paired(trials.filter((trial) => trial.step === step && trial.turn === turn))[0];
}

/** Something that one end saw in a trial. */
export interface Seen {
  key: string;
  end: "client" | "probe";
  /** Milliseconds since the first request of the trial. */
  offset: number;
  what: string;
  detail: string;
  /** The entry of the probe's log. */
  entry?: GatewayEntry;
  /** Whether it is a message on its way to the client, or its arrival. */
  isMessage: boolean;
}

export interface Trace {
  seen: readonly Seen[];
  /** Whether the times of both ends can be told from one clock. */
  oneClock: boolean;
}

// clocks of two machines that differ by less than this and whose order is right are taken for one
const APART_S = 5;

/** What both ends saw in a trial, in its order. Where their clocks differ, the probe's times count from its first entry. */
export function traceOf({ exchanges, entries, moments }: GatewayTrial): Trace {
  const [first, entered] = [Math.min(...exchanges.map(({ began }) => began)), Math.min(...entries.map(({ at }) => at))];
  const began = Number.isFinite(first) ? first : entered;
  const oneClock = !Number.isFinite(entered) || Math.abs(entered - began) < APART_S;
  const probeBegan = oneClock ? began : entered;
  const seen = [
    ...exchanges.flatMap((exchange, index) => seenByClient(exchange, `${index}`, began)),
    ...seenMoments(moments, began),
    ...entries.map((entry) => seenByProbe(entry, probeBegan)),
  ];
  return { seen: seen.toSorted((a, b) => a.offset - b.offset), oneClock };
}

/** Milliseconds between two moments that are in seconds. */
const since = (began: number, at: number) => (at - began) * 1000;

function seenByClient(exchange: GatewayExchange, key: string, from: number): Seen[] {
  const { name, method, began, status, head_at: headAt, content_type: type, arrived, messages, end, ended, faults, problem } = exchange;
  const rest = messages - arrived.length;
  const at = (part: string, when: number, what: string, detail: string, isMessage = false): Seen => {
    return { key: `${key} ${part}`, end: "client", offset: since(from, when), what, detail, isMessage };
  };
  const facts = [`${name}: ended`, rest > 0 && `after ${rest} more messages`, ...faults].filter((fact) => fact !== false);
  return [
    at("began", began, `${method} ${name}`, "sent"),
    ...(headAt === null ? [] : [at("head", headAt, String(status ?? "no status"), `${name}: ${type ?? "no content type"}`)]),
    ...arrived.map(({ at: when, what, size }, index) => at(String(index), when, what, `${name}: arrived, ${size} bytes`, true)),
    at("ended", ended, problem === "" ? end : problem, facts.join(", ")),
  ];
}

function seenMoments(moments: Readonly<Record<string, unknown>>, from: number): Seen[] {
  const timed = Object.entries(moments).filter((moment): moment is [string, number] => typeof moment[1] === "number");
  return timed.map(([what, at]) => ({ key: `moment ${what}`, end: "client", offset: since(from, at), what, detail: "", isMessage: false }));
}

function seenByProbe(entry: GatewayEntry, from: number): Seen {
  const { seq, at, kind, what } = entry;
  return { key: `#${seq}`, end: "probe", offset: since(from, at), what: kind, detail: what, entry, isMessage: kind === "message.emitted" };
}

/** A line of the comparison of two exchanges. */
export interface Line {
  name: string;
  direct: string;
  through: string;
  differs: boolean;
}

const named = (name: string, trial: GatewayTrial | undefined) => trial?.exchanges.find((each) => each.name === name);

/** The exchanges of both ways by name, each with what can be compared of them. */
export function exchangesOf({ direct, through }: Pair): readonly (readonly [name: string, lines: readonly Line[]])[] {
  const names = new Set([direct, through].flatMap((trial) => trial?.exchanges.map(({ name }) => name) ?? []));
  return [...names].map((name) => [name, linesOf(named(name, direct), named(name, through))]);
}

const ms = (from: number, to: number | null | undefined) => (to === null || to === undefined ? "never" : `${Math.round((to - from) * 1000)} ms`);

/** What is compared, and whether another value is a difference: times always have one. */
const COMPARED: readonly (readonly [name: string, of: (exchange: GatewayExchange) => string, counts: boolean])[] = [
  ["Status", ({ status, problem }) => (status === null ? problem || "none" : String(status)), true],
  ["Protocol", ({ protocol, method }) => `${method} over ${protocol}`, false],
  ["Content-Type", (exchange) => exchange.content_type ?? "none", true],
  ["Framing", ({ framing }) => framing ?? "none", false],
  ["Messages", ({ messages, comments }) => `${messages}${comments > 0 ? ` and ${comments} comments` : ""}`, true],
  ["Head after", ({ began, head_at: head }) => ms(began, head), false],
  ["First message after", ({ began, arrived }) => ms(began, arrived[0]?.at), false],
  ["Ended", ({ began, ended, end, problem }) => `${problem || end}, after ${ms(began, ended)}`, false],
  ["Faults", ({ faults }) => faults.join(", ") || "none", true],
  ["Body", ({ body }) => body.slice(0, 200) || "–", false],
];

function linesOf(direct: GatewayExchange | undefined, through: GatewayExchange | undefined): readonly Line[] {
  const lines = COMPARED.map(([name, of, counts]) => {
    const [one, other] = [direct, through].map((exchange) => (exchange === undefined ? "not made" : of(exchange)));
    return { name, direct: one ?? "", through: other ?? "", differs: counts && one !== other };
  });
  return lines.filter((line) => line.name !== "Body" || line.direct !== "–" || line.through !== "–");
}
