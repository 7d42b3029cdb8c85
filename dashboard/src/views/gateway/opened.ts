import { useSyncExternalStore } from "react";
import type { OpenedRun } from "./read-run";

// for as long as the page lives: the way back from another view shows it again, and nothing is stored
let opened: OpenedRun | null = null;
const listeners = new Set<() => void>();

function set(run: OpenedRun | null): void {
  opened = run;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The run that is open, and how to open another one or none. */
export function useOpened(): [OpenedRun | null, (run: OpenedRun | null) => void] {
  return [useSyncExternalStore(subscribe, () => opened), set];
}
