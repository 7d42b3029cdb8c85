import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";
import { type Filters, filtersOf } from "./filters";

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

type Changes = Readonly<Record<string, string | readonly string[]>>;

interface LiveUrl {
  filters: Filters;
  /** `wire`: a line for each exchange; `all`: a line for each entry of the log. */
  view: "wire" | "all";
  order: "oldest" | "newest";
  /** The selected entry. */
  at: string;
  /** Sets parameters; "" or [] takes one out. `push` makes a step for the browser's back button. */
  change: (changes: Changes, push?: boolean) => void;
  /** Takes all filters out. */
  clear: () => void;
  /** The address of this view with other parameters, for a link. */
  href: (changes: Changes) => string;
}

/** The state of the view, all of which is in its address. */
export function useLiveUrl(): LiveUrl {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const filters = useMemo(() => filtersOf(new URLSearchParams(text)), [text]);
  const change = useCallback((changes: Changes, push = false) => setParams((before) => changed(before, changes), { replace: !push }), [setParams]);
  const clear = useCallback(
    () => setParams((before) => changed(new URLSearchParams(), kept(before)), { replace: true }),
    [setParams],
  );
  const href = useCallback((changes: Changes) => `/live?${changed(new URLSearchParams(text), changes)}`, [text]);
  const view = params.get("view") === "all" ? "all" : "wire";
  const order = params.get("order") === "newest" ? "newest" : "oldest";
  return { filters, view, order, at: params.get("at") ?? "", change, clear, href };
}

/** What is no filter. */
function kept(params: URLSearchParams): Changes {
  return Object.fromEntries(["view", "order", "at", "deliveries"].map((name) => [name, params.get(name) ?? ""]));
}

function changed(before: URLSearchParams, changes: Changes): URLSearchParams {
  const after = new URLSearchParams(before);
  for (const [name, value] of Object.entries(changes)) {
    after.delete(name);
    for (const each of typeof value === "string" ? [value] : value) {
      if (each !== "") after.append(name, each);
    }
  }
  return after;
}
