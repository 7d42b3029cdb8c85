import { useCallback, useSyncExternalStore } from "react";

/** Whether the window is no wider than this; by default, where the style sheets make one column of the page. */
export function useNarrow(width = "48rem"): boolean {
  const query = `(max-width: ${width})`;
  const subscribe = useCallback(
    (listener: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}
