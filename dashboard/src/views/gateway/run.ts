import { parseJson } from "~/protocol/json";
import type { GatewayEntry, GatewayExchange, GatewayFinding, GatewayReport, GatewayTrial } from "~/protocol/schema";
import type { Tone } from "~/ui/badge";
import { counted } from "~/words/text";

/** What the file is called, and the run that is in it. */
export interface OpenedRun {
  name: string;
  report: GatewayReport;
}

const FORMAT = "mcp-probe-gateway";
const VERSION = 2;
// a full run has about 1 MB; a browser reads this much in a second or two
const LARGEST = 32 * 1024 * 1024;

/** Why a file cannot be shown, in one line for a person. */
export class UnreadableRun extends Error {}

/** Reads a run from a file; raises `UnreadableRun` for what is none. Nothing leaves the browser. */
export async function readRun(file: File): Promise<OpenedRun> {
  if (file.size > LARGEST) throw new UnreadableRun(`${file.name} has ${Math.round(file.size / 1024 / 1024)} MB; a run has at most ${LARGEST / 1024 / 1024} MB.`);
  return { name: file.name, report: parseRun(await file.text(), file.name) };
}

/** The same from the text of a file; `name` is only for what is said of it. */
export function parseRun(text: string, name: string): GatewayReport {
  const value = jsonOf(text, name);
  const { format, version } = (typeof value === "object" && value !== null ? value : {}) as { format?: unknown; version?: unknown };
  if (format !== FORMAT) throw new UnreadableRun(`${name} is JSON, but no run of mcp-probe gateway. Make one with --format json.`);
  if (version !== VERSION) throw new UnreadableRun(`${name} has version ${String(version)} of the format; this page reads version ${VERSION}.`);
  const wrong = wrongPart(value, REPORT, "");
  if (wrong !== null) throw new UnreadableRun(`${name} is damaged: ${wrong}.`);
  return value as GatewayReport;
}

function jsonOf(text: string, name: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new UnreadableRun(`${name} is no JSON. Make a run with mcp-probe gateway --format json --out FILE.`);
  }
}

/** What a part must be for the page to show it: a kind of value, a list of something, or an object with these members. */
type Shape = "text" | "number" | "text or null" | "number or null" | "true or false" | "object" | readonly [Shape] | { readonly [member: string]: Shape };

const EXCHANGE: Shape = {
  name: "text",
  protocol: "text",
  method: "text",
  began: "number",
  status: "number or null",
  head_at: "number or null",
  content_type: "text or null",
  framing: "text or null",
  messages: "number",
  arrived: [{ at: "number", size: "number", what: "text" }],
  comments: "number",
  body: "text",
  faults: ["text"],
  end: "text",
  ended: "number",
  problem: "text",
};

const TRIAL: Shape = {
  step: "text",
  phase: "text",
  way: "text",
  turn: "number",
  skipped: "text",
  moments: "object",
  calls: ["text"],
  exchanges: [EXCHANGE],
  exchanges_made: "number",
  entries: [{ seq: "number", at: "number", kind: "text", what: "text", call: "text or null" }],
  entries_seen: "number",
};

const FINDING: Shape = {
  name: "text",
  severity: "text",
  title: "text",
  verdict: "text",
  allowed: "true or false",
  direct: "text",
  through: "text",
  evidence: "text",
  hints: [{ product: "text or null", lines: ["text"] }],
  trials: ["number"],
};

const REPORT: Shape = {
  program: "text",
  started_at: "number",
  direct: "text",
  through: "text",
  profile: "text",
  partial: "text",
  product: "text or null",
  log: { run: "text or null" },
  findings: [FINDING],
  trials: [TRIAL],
};

const KINDS: Readonly<Record<string, readonly string[]>> = {
  text: ["string"],
  number: ["number"],
  "text or null": ["string", "null"],
  "number or null": ["number", "null"],
  "true or false": ["boolean"],
  object: ["object"],
};
const kindOf = (value: unknown) => (value === null ? "null" : typeof value);

/** The first part of a value that has not its shape, in words; null where all have it. */
function wrongPart(value: unknown, shape: Shape, path: string): string | null {
  const here = path === "" ? "it" : path;
  if (typeof shape === "string") return KINDS[shape]?.includes(kindOf(value)) === true ? null : `${here} should be ${shape}`;
  if (isList(shape)) {
    if (!Array.isArray(value)) return `${here} should be a list`;
    return firstOf(value.entries(), ([index, member]) => wrongPart(member, shape[0], `${path}[${index}]`));
  }
  if (typeof value !== "object" || value === null) return `${here} should be an object`;
  return firstOf(Object.entries(shape), ([name, of]) => wrongPart((value as Record<string, unknown>)[name], of, path === "" ? name : `${path}.${name}`));
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);

function firstOf<Each>(all: Iterable<Each>, find: (each: Each) => string | null): string | null {
  for (const each of all) {
    const found = find(each);
    if (found !== null) return found;
  }
  return null;
}

type Verdict = GatewayFinding["verdict"];

interface Looks {
  verdict: Verdict;
  tone: Tone;
  /** Stands over those with this verdict. */
  meaning: string;
  /** Whether they are shown without being asked for. */
  open: boolean;
}

/** The verdicts, what matters most first. */
export const VERDICTS: readonly Looks[] = [
  { verdict: "broken", tone: "bad", meaning: "Wrong results, double effects, or a part of the protocol that is lost", open: true },
  { verdict: "degraded", tone: "warn", meaning: "Late, or limited", open: true },
  { verdict: "changed", tone: "info", meaning: "A difference that a gateway is allowed", open: true },
  { verdict: "unclear", tone: "neutral", meaning: "Not decided: the direct path itself was late, or a call was not found at the probe", open: true },
  { verdict: "same", tone: "good", meaning: "The same on both paths", open: false },
  { verdict: "n/a", tone: "neutral", meaning: "The gateway does not offer what the check is about, or another fault hides it", open: false },
];

const SEVERITIES: Readonly<Record<GatewayFinding["severity"], string>> = {
  A: "wrong results or double effects",
  B: "a part of the protocol is lost",
  C: "late or limited",
  D: "for information",
};

/** How much harm a fault does, in words. */
export const harmOf = ({ severity }: GatewayFinding): string => SEVERITIES[severity] ?? severity;

/** `1 broken, 2 degraded, 36 the same`: how many findings have each verdict that any has. */
export function countsOf(findings: readonly GatewayFinding[]): string {
  const parts = VERDICTS.map(({ verdict }) => [verdict === "same" ? "the same" : verdict, findings.filter((each) => each.verdict === verdict).length] as const);
  return parts.filter(([, count]) => count > 0).map(([word, count]) => `${count} ${word}`).join(", ");
}

/** What a run says of the gateway, in one sentence. */
export function sentenceOf({ findings, product }: GatewayReport): string {
  const gateway = product ?? "The gateway";
  const of = (verdict: Verdict) => findings.filter((each) => each.verdict === verdict && !each.allowed).length;
  const [broken, degraded, unclear] = [of("broken"), of("degraded"), of("unclear")];
  if (broken > 0) return `${gateway} breaks ${counted(broken, "part")} of the protocol${degraded > 0 ? ` and limits ${degraded}` : ""}.`;
  if (degraded > 0) return `${gateway} breaks nothing, and limits ${counted(degraded, "part")} of the protocol.`;
  if (unclear > 0) return `${gateway} breaks nothing that could be judged; ${counted(unclear, "part")} could not.`;
  return findings.length === 0 ? "No check was made." : `${gateway} passes on all of the protocol that was checked.`;
}

/** A finding as Markdown, for the maker of the gateway. */
export function forMaker(finding: GatewayFinding, { through, product, profile, program }: GatewayReport): string {
  const lines = [
    `### ${finding.name}: ${finding.title}`,
    "",
    `${product ?? "The gateway"} at ${through}, checked with mcp-probe ${program} (profile ${profile}). Verdict: ${finding.verdict}.`,
    "",
    "| way | measured |",
    "|---|---|",
    `| without the gateway | ${cell(finding.direct)} |`,
    `| through the gateway | ${cell(finding.through)} |`,
    ...(finding.evidence === "" ? [] : ["", `Evidence: ${finding.evidence}`]),
    ...(finding.hints.length === 0 ? [] : ["", "Remedy:", "", ...finding.hints.map(itemOf)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** A hint as an item of a list, what to set as code. */
function itemOf({ product, lines }: GatewayFinding["hints"][number]): string {
  return product === null ? `- ${lines.join(" ")}` : `- ${product}: ${lines.map((line) => `\`${line}\``).join(" ")}`;
}

const cell = (text: string) => text.replaceAll("|", String.raw`\|`).replaceAll("\n", " ");

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
