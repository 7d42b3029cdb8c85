import { useSyncExternalStore } from "react";
import type { OpenedRun } from "./run";

// for as long as the page lives: the way back from another view shows it again, and nothing is stored
let current: OpenedRun | null = null;
const listeners = new Set<() => void>();

export function setOpened(run: OpenedRun | null): void {
  current = run;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The run that is open, or null. */
export function useOpened(): OpenedRun | null {
  return useSyncExternalStore(subscribe, () => current);
}
