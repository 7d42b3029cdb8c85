import type { JudgedRule, JudgedSubject, RuleInfo, RuleSentence } from "~/protocol/schema";
import { isFinding, type Verdict, VERDICTS } from "~/trace/findings";
import { counted } from "~/words/text";

/** How strongly the specification obliges. */
export const LEVELS: Readonly<Record<JudgedRule["level"], string>> = { must: "MUST", should: "SHOULD", may: "MAY", practice: "good practice" };

const PLACES = new Map(VERDICTS.map(([verdict], at) => [verdict, at]));
const placeIn = (verdict: Verdict) => PLACES.get(verdict) ?? 0;
const STRENGTHS = Object.keys(LEVELS);

/** The worst first: by the verdict, then by how strongly the rule obliges, then by how often it was broken. */
export function byWorst(a: JudgedRule, b: JudgedRule): number {
  return placeIn(a.verdict) - placeIn(b.verdict) || STRENGTHS.indexOf(a.level) - STRENGTHS.indexOf(b.level) || (b.counts[b.verdict] ?? 0) - (a.counts[a.verdict] ?? 0);
}

/** What it spoke and over what, and how much. */
export function placeOf({ revisions, transports, requests, sessions }: Pick<JudgedSubject, "revisions" | "transports" | "requests" | "sessions">): string {
  const spoken = [revisions.join(", "), transports.length > 0 && `over ${transports.join(", ")}`].filter((part) => part !== "" && part !== false).join(" ");
  const counts = [requests > 0 && counted(requests, "request"), sessions > 0 && counted(sessions, "session")].filter((part) => part !== false).join(", ");
  return [spoken, counts].filter((part) => part !== "").join("; ");
}

/** `broken in 1 of 6 checks`: how many of the opportunities had the verdict of the rule. */
export function shareOf({ verdict, counts, count }: Pick<JudgedRule, "verdict" | "counts" | "count">): string {
  return `${isFinding({ verdict }) ? "broken in " : ""}${counts[verdict] ?? 0} of ${counted(count, "check")}`;
}

/** The sentences that a rule rests on, each with the pages that have it: those that demand it, and of these the ones of the revisions spoken. */
export function sentencesOf(info: Pick<RuleInfo, "spec">, revisions: readonly string[]): readonly { text: string; pages: readonly RuleSentence[] }[] {
  return [...Map.groupBy(demandsOf(info, revisions), ({ text }) => text)].map(([text, pages]) => ({ text, pages }));
}

function demandsOf({ spec }: Pick<RuleInfo, "spec">, revisions: readonly string[]): readonly RuleSentence[] {
  const demanding = spec.filter(({ role }) => role === "demands");
  const all = demanding.length > 0 ? demanding : spec;
  const spoken = all.filter(({ doc }) => revisions.some((revision) => doc.startsWith(`${revision}/`)));
  return spoken.length > 0 ? spoken : all;
}

/** What stands before the dot of a rule's id: the rules about one feature. */
export function groupOf(rule: string): string {
  return rule.slice(0, rule.indexOf("."));
}

const GROUPS: Readonly<Record<string, string>> = {
  cache: "Caching of lists",
  cancel: "Cancellation",
  elicit: "Elicitation",
  http: "HTTP",
  jsonrpc: "JSON-RPC",
  lifecycle: "Initialization and shutdown",
  listen: "Subscriptions",
  logging: "Logging",
  meta: "Metadata (_meta)",
  mrtr: "Questions in results",
  page: "Paging",
  param: "Mirrored arguments",
  ping: "Ping",
  polite: "Consideration",
  progress: "Progress",
  refused: "Refusals",
  result: "Results",
  resume: "Resuming streams",
  robust: "Robustness",
  roots: "Roots",
  sampling: "Sampling",
  security: "Security",
  session: "Sessions",
  skills: "Skills",
  stdio: "Standard streams",
  tasks: "Tasks (2025)",
  tasksx: "Tasks (extension)",
  tools: "Tools",
  version: "Version negotiation",
  websocket: "WebSocket",
};

/** What the rules of a group are about, for people. */
export const groupName = (group: string) => GROUPS[group] ?? group;

/** The rules of a group at one revision. `state` is the worst verdict, or why there is none. */
export interface Cell {
  state: Exclude<Verdict, "NOT_OBSERVED"> | "not tried" | "absent";
  /** How many rules were observed, of how many the revision has. */
  observed: number;
  all: number;
}

export interface Group {
  name: string;
  cells: readonly Cell[];
}

/** The groups of rules, each with a cell for each of these revisions; a group that none of them has is left out. */
export function groupsOf(subject: Pick<JudgedSubject, "verdicts">, rules: ReadonlyMap<string, RuleInfo>, revisions: readonly string[]): readonly Group[] {
  const verdicts = new Map(subject.verdicts.map((rule) => [rule.rule, rule]));
  const names = [...new Set([...rules.keys()].map(groupOf))];
  const groups = names.map((name) => {
    const members = [...rules.values()].filter(({ rule }) => groupOf(rule) === name);
    return { name: groupName(name), cells: revisions.map((revision) => cellOf(members, revision, verdicts)) };
  });
  return groups.filter(({ cells }) => cells.some(({ state }) => state !== "absent")).toSorted((a, b) => a.name.localeCompare(b.name));
}

function cellOf(members: readonly RuleInfo[], revision: string, verdicts: ReadonlyMap<string, JudgedRule>): Cell {
  const there = members.filter(({ revisions }) => revisions.includes(revision));
  const found = there.map(({ rule }) => verdicts.get(rule)?.at[revision]).filter((verdict) => verdict !== undefined && verdict !== "NOT_OBSERVED");
  const worst = VERDICTS.find(([verdict]) => found.includes(verdict))?.[0];
  const state = there.length === 0 ? "absent" : worst === undefined || worst === "NOT_OBSERVED" ? "not tried" : worst;
  return { state, observed: found.length, all: there.length };
}
