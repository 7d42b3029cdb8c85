import { useCallback, useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { useServer } from "~/protocol/use-server";
import { endingAt } from "./activity";
import type { Span } from "./lane";

const MINUTE = 60;
const SHORTEST = 0.05;
const LONGEST = 6 * 3600;
// a moving picture that does not tire the machine; once a second for those who want no motion
const TICK_MS = 200;

/** The clock of the server in seconds since the epoch; it stands still while `runs` is false. */
function useClock(runs: boolean): number {
  const { data, dataUpdatedAt } = useServer();
  const ahead = data === undefined ? 0 : data.started_at + data.uptime_s - dataUpdatedAt / 1000;
  // less than what the request itself takes is no difference
  const offset = Math.abs(ahead) < 1 ? 0 : ahead;
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!runs) return undefined;
    const every = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : TICK_MS;
    const timer = setInterval(() => setNow(Date.now() / 1000), every);
    return () => clearInterval(timer);
  }, [runs]);
  return now + offset;
}

export interface ShownSpan extends Span {
  now: number;
  /** Whether it follows the clock. */
  live: boolean;
  /** Set where it would follow the clock, but nothing has happened in the last minute: when something last did, which is shown. */
  quietSince: number | null;
  /** Stands still at a span. */
  hold: (span: Span) => void;
  /** Follows the clock again, with the usual length. */
  follow: () => void;
  /** Shows a `factor` of what is shown: around its middle, or up to now. */
  zoom: (factor: number) => void;
  /** Goes later (or earlier) by a share of what is shown, and stands still. */
  pan: (share: number) => void;
}

const clamp = (length: number) => Math.min(LONGEST, Math.max(SHORTEST, length));

/**
 * Which span is shown, from the URL: `from` and `until` when it stands still, else the last `span` seconds.
 *
 * `last` is when something last happened. Where that lies before those seconds, the last ones in which something happened are shown.
 */
export function useSpan(last: number | undefined): ShownSpan {
  const [params, setParams] = useSearchParams();
  const [from, until] = [Number(params.get("from") ?? Number.NaN), Number(params.get("until") ?? Number.NaN)];
  const held = until > from;
  const now = useClock(!held);
  const length = clamp(Number(params.get("span") ?? MINUTE) || MINUTE);
  const quietSince = !held && last !== undefined && last < now - length ? last : null;
  const live = !held && quietSince === null;
  const set = useCallback(
    (values: Readonly<Record<string, number>>) => {
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          for (const name of ["from", "until", "span"]) after.delete(name);
          for (const [name, value] of Object.entries(values)) after.set(name, String(Math.round(value * 1000) / 1000));
          return after;
        },
        { replace: true },
      );
    },
    [setParams],
  );
  const span = held ? { from, until } : quietSince === null ? { from: now - length, until: now } : endingAt(quietSince, length);
  const hold = useCallback((shown: Span) => set({ from: shown.from, until: shown.until }), [set]);
  const follow = useCallback(() => set({}), [set]);
  const zoom = (factor: number) => {
    if (live) return set({ span: clamp(length * factor) });
    const middle = (span.from + span.until) / 2;
    const half = clamp((span.until - span.from) * factor) / 2;
    return hold({ from: middle - half, until: middle + half });
  };
  const pan = (share: number) => {
    const step = (span.until - span.from) * share;
    hold({ from: span.from + step, until: span.until + step });
  };
  return { ...span, now, live, quietSince, hold, follow, zoom, pan };
}
