import { type Query, get } from "~/protocol/client";
import type { EventPage } from "~/protocol/schema";
import type { Viewed } from "./entry";

/** A number larger than any of a log, in as many digits as the API reads. */
const NEWEST = 999_999_999_999_999;
// how many pages are asked for at most: a rare kind may be in none of them
const PAGES = 20;

export interface Found {
  /** Newest first. */
  events: readonly Viewed[];
  /** Whether the log was read back to its first entry, and nothing had been pushed out of it. */
  complete: boolean;
}

/** The newest entries that pass the filters of `query`, at most `most` of them, over as many pages as that takes. */
export async function newestEvents(query: Query, most: number, signal: AbortSignal): Promise<Found> {
  const events: Viewed[] = [];
  let before: number | null = NEWEST;
  let evicted = false;
  for (let pages = 0; pages < PAGES && before !== null && events.length < most; pages += 1) {
    const page: EventPage = await get<EventPage>("/events", { ...query, before, limit: most - events.length, view: 1 }, signal);
    events.push(...(page.events as Viewed[]));
    before = page.next;
    evicted = page.gap !== null;
  }
  return { events, complete: before === null && !evicted };
}
