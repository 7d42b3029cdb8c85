import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";
import { IN_LINE, lineOf } from "./old-links";

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

export interface LiveUrl {
  /** The filter line. */
  line: string;
  /** `wire`: a line for each exchange; `all`: a line for each entry of the log. */
  view: "wire" | "all";
  order: "oldest" | "newest";
  /** The selected entry. */
  at: string;
  /** Deliveries are told in the row of their message. */
  fold: boolean;
  /** Sets parameters; "" takes one out. `push` makes a step for the browser's back button. */
  change: (changes: Changes, push?: boolean) => void;
  /** Sets the filter line. */
  filter: (line: string) => void;
  /** The address of this view with other parameters, for a link. */
  href: (changes: Changes) => string;
}

/** The state of the view, all of which is in its address. */
export function useLiveUrl(): LiveUrl {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const line = useMemo(() => lineOf(new URLSearchParams(text)), [text]);
  const change = useCallback((changes: Changes, push = false) => setParams((before) => changed(before, changes), { replace: !push }), [setParams]);
  const filter = useCallback((next: string) => setParams((before) => changed(before, { filter: next }), { replace: true }), [setParams]);
  const href = useCallback((changes: Changes) => `/live?${changed(new URLSearchParams(text), changes)}`, [text]);
  const view = params.get("view") === "all" ? "all" : "wire";
  const order = params.get("order") === "newest" ? "newest" : "oldest";
  return { line, view, order, at: params.get("at") ?? "", fold: params.get("deliveries") !== "rows", change, filter, href };
}

function changed(before: URLSearchParams, changes: Changes): URLSearchParams {
  const after = new URLSearchParams(before);
  if ("filter" in changes) for (const name of IN_LINE) after.delete(name);
  for (const [name, value] of Object.entries(changes)) {
    after.delete(name);
    if (value !== "") after.append(name, value);
  }
  return after;
}
