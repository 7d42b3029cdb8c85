import { createContext, use, useSyncExternalStore } from "react";
import type { Feed, Snapshot } from "./feed";

/** The one feed of the page; app.tsx provides it, tests provide their own. */
export const FeedContext = createContext<Feed | null>(null);

export function useTheFeed(): Feed {
  const feed = use(FeedContext);
  if (feed === null) throw new Error("there is no FeedContext around this component");
  return feed;
}

/**
 * A part of the feed's snapshot; renders again when that part is another one (by `Object.is`).
 *
 * `select` must return what is in the snapshot, or a primitive; derive lists from that with useMemo.
 */
export function useFeed<Part>(select: (snapshot: Snapshot) => Part): Part {
  const feed = useTheFeed();
  return useSyncExternalStore(feed.subscribe, () => select(feed.snapshot()));
}
