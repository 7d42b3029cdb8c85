import { useSyncExternalStore } from "react";

// the width at which the style sheets make one column of the page
const NARROW = "(max-width: 48rem)";

function subscribe(listener: () => void): () => void {
  const query = matchMedia(NARROW);
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}

/** Whether the window is as narrow as that of a phone, where a table has room for three columns. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => matchMedia(NARROW).matches);
}
