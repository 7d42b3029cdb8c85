import type { JudgedSubject, SessionRow } from "~/protocol/schema";
import { headlineOf } from "~/trace/findings";
import { UNATTRIBUTED } from "~/words/text";

/** One client: what the judge takes for one, with the sessions that it had. */
export interface Client {
  /** The name under which the judge has it, and its page: a label, a session or a connection. */
  name: string;
  /** The newest first; none of a client whose rows have made room. */
  rows: readonly SessionRow[];
  /** Null while nothing is judged. */
  subject: JudgedSubject | null;
  /** When its latest message came, in seconds since the epoch; 0 where no row says so. */
  lastAt: number;
}

/** Clients with the same name and version, which probably are runs of one program: the newest, and those before. */
export interface Card {
  client: Client;
  earlier: readonly Client[];
}

/** All clients, the newest first. What is unattributed is the last. */
export function clientsOf(rows: readonly SessionRow[], subjects: readonly JudgedSubject[]): readonly Client[] {
  const own = Map.groupBy(rows, ({ subject }) => subject);
  const judged = new Map(subjects.map((subject) => [subject.label, subject]));
  const names = new Set([...own.keys(), ...judged.keys()]);
  const clients = [...names].map((name): Client => {
    const sessions = (own.get(name) ?? []).toSorted((a, b) => b.opened_at - a.opened_at);
    return { name, rows: sessions, subject: judged.get(name) ?? null, lastAt: Math.max(0, ...sessions.map(({ last_at: at }) => at)) };
  });
  return clients.toSorted(byNewest);
}

// two clients that work at the same time do not change places with each message
const PLACE_S = 60;

function byNewest(a: Client, b: Client): number {
  const unknown = Number(a.name === UNATTRIBUTED) - Number(b.name === UNATTRIBUTED);
  return unknown || Math.floor(b.lastAt / PLACE_S) - Math.floor(a.lastAt / PLACE_S) || beganAt(b) - beganAt(a) || a.name.localeCompare(b.name);
}

const beganAt = ({ rows }: Client) => rows[0]?.opened_at ?? 0;

/**
 * A card for each client. Those without a label that give the same name and version share one, with the newest as its client.
 *
 * Clients that break rules come first, then those with warnings, then the others; in each of these the newest first.
 */
export function cardsOf(clients: readonly Client[]): readonly Card[] {
  const groups = Map.groupBy(clients, (client) => {
    const self = selfNameOf(client);
    return client.name === UNATTRIBUTED || self === "" || labelOf(client) !== null ? `client ${client.name}` : `program ${self}`;
  });
  return [...groups.values()].flatMap(([client, ...earlier]) => (client === undefined ? [] : [{ client, earlier }])).toSorted(byWorst);
}

function byWorst(a: Card, b: Card): number {
  return placeOf(a.client) - placeOf(b.client);
}

function placeOf({ name, subject }: Client): number {
  if (name === UNATTRIBUTED) return 3;
  const mood = subject === null ? "neutral" : moodOf(subject);
  return mood === "bad" ? 0 : mood === "warn" ? 1 : 2;
}

/** The name that the client was given in its address or by the environment; null where it was given none. */
function labelOf({ name, rows, subject }: Client): string | null {
  return subject?.kind === "label" || rows.some(({ label }) => label === name) ? name : null;
}

// a gateway check opens a client for each trial, with a number at the end of its name
const TRIAL = /^(gateway-check)-\d+/;

/** `agent 1.2`: the names and versions that the client gave itself; empty where it gave none. */
function selfNameOf({ rows, subject }: Pick<Client, "rows" | "subject">): string {
  const names = subject?.names.map(({ name, version }) => `${name} ${version}`.trim()) ?? rows.map((row) => `${row.client_name} ${row.client_version}`.trim());
  return [...new Set(names)].filter((name) => name !== "").join(", ").replace(TRIAL, "$1");
}

/** What a client is called: by its label, else by its own name; `aside` is what stands beside it. */
export function titleOf(client: Client): { title: string; aside: string } {
  if (client.name === UNATTRIBUTED) return { title: "Unattributed traffic", aside: "no known client" };
  const own = selfNameOf(client);
  const label = labelOf(client);
  if (label === null) return { title: own || client.name, aside: own === "" ? "gave no name" : client.name };
  // a name that is that of the label says no more than its version
  return { title: label, aside: own.startsWith(`${label} `) ? own.slice(label.length + 1) : own };
}

/** How many tool calls a client has begun. */
export function callsOf(row: SessionRow): number {
  return Object.values(row.tools).reduce((all, count) => all + count, 0);
}

export type Mood = "bad" | "warn" | "good" | "neutral";

/** What the verdicts come to, in words that a name can stand before: `breaks 3 MUST rules of 2025-11-25; 25 of 96 rules exercised`. */
export function conclusionOf(subject: Pick<JudgedSubject, "conclusion" | "summary">): string {
  // a report that was saved by an earlier version has none
  return subject.conclusion || headlineOf(subject);
}

/** The same with the name of the client before it. */
export function conclusionOn(title: string, subject: Pick<JudgedSubject, "conclusion" | "summary">): string {
  const says = conclusionOf(subject);
  return says.startsWith("breaks") ? `${title} ${says}` : `${title}: ${says}`;
}

/** How bad that is. */
export function moodOf(subject: Pick<JudgedSubject, "summary">): Mood {
  const { failed, warned, passed } = countsOf(subject);
  if (failed > 0) return "bad";
  if (warned > 0) return "warn";
  return passed > 0 ? "good" : "neutral";
}

/** How many rules have which verdict. Each that was observed is exercised, whatever came of it. */
export function countsOf({ summary }: Pick<JudgedSubject, "summary">) {
  const of = (verdict: string) => summary[verdict] ?? 0;
  const all = Object.values(summary).reduce((sum, count) => sum + count, 0);
  return { failed: of("FAIL"), warned: of("WARN"), unclear: of("INCONCLUSIVE"), passed: of("PASS"), exercised: all - of("NOT_OBSERVED"), all };
}
