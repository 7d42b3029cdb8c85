import { createContext, use, useCallback, useEffect, useState, useSyncExternalStore } from "react";
import type { Feed, Snapshot } from "./feed";

/** The one feed of the page; app.tsx provides it, tests provide their own. */
export const FeedContext = createContext<Feed | null>(null);

function useTheFeed(): Feed {
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

/** As long as the component is shown, the feed brings the entries of this session or client only; null: of all. */
export function useOnly(session: string | null): void {
  const feed = useTheFeed();
  useEffect(() => feed.only(session), [feed, session]);
  useEffect(() => () => feed.only(null), [feed]);
}

interface Holdable {
  /** The newest snapshot, or the one at which the view was paused. */
  snapshot: Snapshot;
  paused: boolean;
  setPaused: (paused: boolean) => void;
  /** How many items came since. */
  behind: number;
  /** Forgets the items so far. */
  clear: () => void;
}

/** The whole snapshot, for a view that can be paused: it keeps its picture while the feed goes on. */
export function useHoldableFeed(): Holdable {
  const feed = useTheFeed();
  const [held, setHeld] = useState<Snapshot | null>(null);
  const live = useSyncExternalStore(feed.subscribe, feed.snapshot);
  const setPaused = useCallback((paused: boolean) => setHeld(paused ? feed.snapshot() : null), [feed]);
  const clear = useCallback(() => {
    feed.clear();
    setHeld(null);
  }, [feed]);
  return { snapshot: held ?? live, paused: held !== null, setPaused, behind: held === null ? 0 : live.total - held.total, clear };
}
