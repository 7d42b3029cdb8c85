import { useState } from "react";
import { useSearchParams } from "wouter";
import { TRANSPORTS } from "~/protocol/client";
import type { CallRow } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { Button } from "~/ui/buttons";
import { FieldError, type Option, SearchField, Select, TextField } from "~/ui/fields";
import { stateOf } from "~/words/states";
import { clientsOf } from "~/words/text";
import styles from "./calls.module.css";

/** The filters of /api/calls that stand in the URL of the page under the same names. */
const FILTERS = ["tool", "toolset", "outcome", "session", "client", "label", "era", "revision", "transport", "task", "run", "from", "until", "text"] as const;

const OUTCOMES = [
  "running",
  "completed",
  "tool_error",
  "protocol_error",
  "cancelled",
  "timed_out",
  "disconnected",
  "input_required",
  "lost",
] as const;

const CONDITION = /^(arguments|result)\./;

function isCondition(name: string): boolean {
  return CONDITION.test(name);
}

/** What of a page's URL is a question to the audit: its filters and its conditions, in a fixed order. */
export function questionOf(params: URLSearchParams): URLSearchParams {
  const question = new URLSearchParams();
  for (const name of FILTERS) {
    const value = params.get(name);
    if (value !== null && value !== "") question.set(name, value);
  }
  for (const [name, value] of params) if (isCondition(name)) question.append(name, value);
  return question;
}

/** A condition as it is typed, `arguments.steps=5`: its name and its value, or what is wrong with it. */
export function conditionOf(typed: string): { name: string; value: string } | { wrong: string } {
  const [name = "", ...rest] = typed.split("=");
  if (!isCondition(name.trim())) return { wrong: "A condition begins with arguments. or result." };
  if (rest.length === 0) return { wrong: "A condition is a path, = and a value" };
  return { name: name.trim(), value: rest.join("=").trim() };
}

/** Which filter a refusal of the API is about: one of `FILTERS`, `condition`, or null for none of them. */
export function fieldOf(detail: string): string | null {
  const named = /^(?:there is no parameter )?["']?([\w.\\]+)/.exec(detail)?.[1] ?? "";
  if (/^(arguments|result)\b/.test(named)) return "condition";
  return FILTERS.find((name) => name === named) ?? null;
}

const pad = (value: number, width = 2) => String(value).padStart(width, "0");

/** A time of the URL (RFC 3339, or seconds since the epoch) as a datetime-local field shows it; "" if it is no time. */
export function localTime(value: string): string {
  const date = /^\d+(\.\d+)?$/.test(value) ? new Date(Number(value) * 1000) : new Date(value);
  if (value === "" || Number.isNaN(date.getTime())) return "";
  const day = `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** What a datetime-local field holds, in the reader's zone, as RFC 3339. */
export function utcTime(local: string): string {
  return local === "" ? "" : new Date(local).toISOString();
}

interface FilterBarProps {
  /** Calls to take suggestions from. */
  known: readonly CallRow[];
  tools: readonly string[];
  /** Whether all but the search and what is set stand behind a button. */
  narrow: boolean;
  /** What the API refused, and the filter it is about. */
  error: { field: string; message: string } | null;
}

const ALL = { value: "", label: "all" };
const OUTCOME_OPTIONS = [ALL, ...OUTCOMES.map((value) => ({ value, label: stateOf(value).label }))];
const ERA_OPTIONS = [ALL, { value: "legacy", label: "2025" }, { value: "modern", label: "2026" }];
const TRANSPORT_OPTIONS = [ALL, ...TRANSPORTS.map((value) => ({ value, label: value }))];
// filters with a field of their own; others come with links and are shown as chips
const FIELDS = new Set(["tool", "outcome", "session", "client", "label", "era", "transport", "from", "until", "text"]);

const distinct = (values: readonly (string | null)[]) => [...new Set(values)].filter((value) => value !== null && value !== "").toSorted() as string[];

/** Sets one parameter of the URL; "" takes it out. */
function useFilters() {
  const [params, setParams] = useSearchParams();
  const change = (edit: (after: URLSearchParams) => void) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        edit(after);
        return after;
      },
      { replace: true },
    );
  const set = (name: string) => (value: string) => change((after) => (value === "" ? after.delete(name) : after.set(name, value)));
  return { params, change, set };
}

// filters that are in view where there is room, and those that are so once one of them is set
const FEW = new Set(["tool", "outcome", "client"]);
const MORE = ["era", "transport", "session", "label", "from", "until"];

/** The filters of the list; all of them are in the URL under the names that the API has for them. */
export function FilterBar({ known, tools, narrow, error }: FilterBarProps) {
  const { params, set } = useFilters();
  const [asked, setAsked] = useState(false);
  const sessions = useFeed((snapshot) => snapshot.tables.sessions);
  const clients = clientsOf(sessions);
  const more = asked || (!narrow && (MORE.some((name) => params.has(name)) || [...params.keys()].some(isCondition)));
  const isShown = (name: string) => more || params.has(name) || (!narrow && FEW.has(name));
  const wrong = (name: string) => (error?.field === name ? error.message : null);
  const text = (name: string, label: string, suggestions: readonly string[]) => (
    <TextField label={label} value={params.get(name) ?? ""} onChange={set(name)} suggestions={suggestions} error={wrong(name)} />
  );
  const choice = (name: string, label: string, options: readonly Option[]) => (
    <span className={styles["stacked"]}>
      <Select label={label} options={options} value={params.get(name) ?? ""} onChange={set(name)} />
      <FieldError error={wrong(name)} />
    </span>
  );
  const time = (name: string, label: string) => (
    <TextField
      label={label}
      type="datetime-local"
      value={localTime(params.get(name) ?? "")}
      onChange={(value) => set(name)(utcTime(value))}
      error={wrong(name)}
    />
  );
  return (
    <div role="search" className={`${styles["filters"]} strip`} aria-label="Filters">
      <span className={styles["stacked"]}>
        <SearchField label="Text anywhere in the row" value={params.get("text") ?? ""} onChange={set("text")} />
        <FieldError error={wrong("text")} />
      </span>
      {isShown("tool") && text("tool", "Tool", tools)}
      {isShown("outcome") && choice("outcome", "Outcome", OUTCOME_OPTIONS)}
      {isShown("client") && text("client", "Client", distinct([...known, ...clients].map(({ client_name }) => client_name)))}
      {isShown("era") && choice("era", "Protocol", ERA_OPTIONS)}
      {isShown("transport") && choice("transport", "Transport", TRANSPORT_OPTIONS)}
      {isShown("session") && text("session", "Session", distinct([...known.map((call) => call.session), ...clients.map(({ id }) => id)]))}
      {isShown("label") && text("label", "Label", distinct([...known, ...clients].map(({ label }) => label)))}
      {isShown("from") && time("from", "From")}
      {isShown("until") && time("until", "Until")}
      {(more || error?.field === "condition") && <Conditions error={wrong("condition")} />}
      <Chips />
      {!more && (
        <Button look="quiet" onClick={() => setAsked(true)}>
          {narrow ? "Filters" : "More filters"}
        </Button>
      )}
      <Clear />
    </div>
  );
}

/** Where a condition on a value inside the JSON is typed. */
function Conditions({ error }: { error: string | null }) {
  const { change } = useFilters();
  const [wrong, setWrong] = useState<string | null>(null);
  const [emptied, setEmptied] = useState(0);
  const add = (typed: string) => {
    if (typed.trim() === "") return setWrong(null);
    const condition = conditionOf(typed);
    if ("wrong" in condition) return setWrong(condition.wrong);
    setWrong(null);
    setEmptied(emptied + 1);
    change((after) => after.set(condition.name, condition.value));
  };
  return (
    <TextField
      key={emptied}
      label="Inside"
      placeholder="arguments.steps=5"
      value=""
      onChange={add}
      error={wrong ?? error}
    />
  );
}

/** Conditions, and filters without a field, each with a button that takes it away. */
function Chips() {
  const { params, change } = useFilters();
  const shown = [...questionOf(params)].filter(([name]) => isCondition(name) || !FIELDS.has(name));
  return shown.map(([name, value]) => (
    <span key={name} className={styles["chip"]}>
      <code>
        {name}={value}
      </code>
      <Button look="quiet" small aria-label={`Remove ${name}=${value}`} onClick={() => change((after) => after.delete(name))}>
        ✕
      </Button>
    </span>
  ));
}

function Clear() {
  const { params, change } = useFilters();
  const clear = () =>
    change((after) => {
      for (const name of params.keys()) {
        if (isCondition(name) || (FILTERS as readonly string[]).includes(name)) after.delete(name);
      }
    });
  if (questionOf(params).size === 0) return null;
  return (
    <Button look="quiet" onClick={clear}>
      Clear filters
    </Button>
  );
}
