import { parseJson } from "~/protocol/json";
import type { GatewayReport } from "~/protocol/schema";

/** What the file is called, and the run that is in it. */
export interface OpenedRun {
  name: string;
  report: GatewayReport;
}

export const FORMAT = "mcp-probe-gateway";
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
