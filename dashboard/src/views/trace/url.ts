import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";
import { quoted } from "~/protocol/filter";
import type { Range } from "~/trace/use-trace";

/** A place in the log. Without a run, as people type it, it means the one that the page shows. */
export interface Place {
  run: string | null;
  seq: number;
}

/** Reads `SEQ` or `RUN-SEQ`, as the feed writes its ids. */
export function placeOf(text: string): Place | null {
  const found = /^(?:(.+)-)?(\d{1,15})$/.exec(text);
  return found === null ? null : { run: found[1] ?? null, seq: Number(found[2]) };
}

type Changes = Readonly<Record<string, string>>;

const VIEWS = ["requests", "ladder", "all"] as const;
export type View = (typeof VIEWS)[number];

export interface TraceUrl {
  /** The filter line. */
  line: string;
  /** A line for each request, the ladder of a client, or a line for each entry of the log. */
  view: View;
  order: "oldest" | "newest";
  /** The selected entry. */
  at: string;
  /** Deliveries are told in the row of their message. */
  fold: boolean;
  /** What is shown of the time; null for all. */
  range: Range | null;
  /** The call whose ladder is shown. */
  call: string | null;
  /** Sets parameters; "" takes one out. `push` makes a step for the browser's back button. */
  change: (changes: Changes, push?: boolean) => void;
  /** Sets the filter line. */
  filter: (line: string) => void;
  setRange: (range: Range | null) => void;
  /** The address of this view with other parameters, for a link. */
  href: (changes: Changes) => string;
}

/** The state of the view, all of which is in its address. */
export function useTraceUrl(): TraceUrl {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const line = useMemo(() => lineOf(new URLSearchParams(text)), [text]);
  const change = useCallback((changes: Changes, push = false) => setParams((before) => changed(before, changes), { replace: !push }), [setParams]);
  const filter = useCallback((next: string) => change({ filter: next }), [change]);
  const setRange = useCallback((range: Range | null) => change({ from: range === null ? "" : range.from.toFixed(6), until: range === null ? "" : range.until.toFixed(6) }), [change]);
  const href = useCallback((changes: Changes) => `/trace?${changed(new URLSearchParams(text), changes)}`, [text]);
  const [from, until] = [Number(params.get("from") ?? 0), Number(params.get("until") ?? 0)];
  const range = useMemo(() => (until > from && from > 0 ? { from, until } : null), [from, until]);
  const call = params.get("call");
  return {
    line,
    view: VIEWS.find((view) => view === params.get("view")) ?? "requests",
    order: params.get("order") === "newest" ? "newest" : "oldest",
    at: params.get("at") ?? "",
    fold: params.get("deliveries") !== "rows",
    range,
    call: call !== null && isWhole(call) ? call : null,
    change,
    filter,
    setRange,
    href,
  };
}

function changed(before: URLSearchParams, changes: Changes): URLSearchParams {
  const after = new URLSearchParams(before);
  if ("filter" in changes) for (const name of IN_LINE) if (name !== "call" || !isWhole(after.get("call") ?? "")) after.delete(name);
  for (const [name, value] of Object.entries(changes)) {
    after.delete(name);
    if (value !== "") after.append(name, value);
  }
  return after;
}

/** Whether a call is named with its run, as the ladder of one is: `RUN.c7`. */
const isWhole = (call: string) => call.includes(".");

// what links had for each word before there was the filter line, and what is the same in it
const KEYS: Readonly<Record<string, string>> = { session: "client", client: "client", label: "client", direction: "direction", method: "method", text: "text", call: "call", task: "task", exchange: "exchange", stream: "stream", connection: "connection" };
const IN_LINE = [...Object.keys(KEYS), "show", "filter"];

/** The filter line of an address: its own, and what links say in parameters of their own. */
export function lineOf(params: URLSearchParams): string {
  const words = Object.entries(KEYS).flatMap(([name, key]) =>
    params.getAll(name).map((value) => (name === "call" && isWhole(value) ? "" : key === "text" ? quoted(value) : `${key}:${quoted(value)}`)),
  );
  const shown = (params.get("show") ?? "").toLowerCase().split(",").map((group) => (group === "" ? "" : group === "problems" ? "problem:any" : `group:${group}`));
  return [...words, ...shown, params.get("filter") ?? ""].filter((part) => part !== "").join(" ");
}
