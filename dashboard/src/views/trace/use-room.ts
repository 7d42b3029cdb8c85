import { useSyncExternalStore } from "react";

const PHONE = "(max-width: 40rem)";
const TABLET = "(max-width: 64rem)";

function subscribe(listener: () => void): () => void {
  const queries = [PHONE, TABLET].map((query) => matchMedia(query));
  for (const query of queries) query.addEventListener("change", listener);
  return () => {
    for (const query of queries) query.removeEventListener("change", listener);
  };
}

function now(): "all" | "beside" | "one" {
  if (matchMedia(PHONE).matches) return "one";
  return matchMedia(TABLET).matches ? "beside" : "all";
}

/** How many columns there is room for, by the width of the window. */
export function useRoom(): "all" | "beside" | "one" {
  return useSyncExternalStore(subscribe, now);
}
