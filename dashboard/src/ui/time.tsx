import { useSyncExternalStore } from "react";
import { formatAgo, formatDuration, formatMoment, formatSeconds, secondsOf } from "./time-format";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

// one timer for all times on the page, and none when there are none
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time in whole seconds since the epoch; renders again each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => Math.floor(Date.now() / 1000));
}

function Ago({ at }: { at: number }) {
  return formatAgo(at, useNow());
}

interface TimeProps {
  /** Seconds since the epoch, or RFC 3339. */
  at: number | string;
  look?: "clock" | "ago" | "both";
}

/** A moment: the wall clock, with the date where that is another day, or how long ago; the whole date is in its title. */
export function Time({ at, look = "clock" }: TimeProps) {
  const seconds = secondsOf(at);
  const iso = new Date(seconds * 1000).toISOString();
  return (
    <time dateTime={iso} title={iso}>
      {look !== "ago" && formatMoment(seconds)}
      {look === "both" && ", "}
      {look !== "clock" && <Ago at={seconds} />}
    </time>
  );
}

/** How long something took, in milliseconds; null is a dash. */
export function Duration({ ms }: { ms: number | null }) {
  return ms === null ? <span aria-label="not known">–</span> : <span title={`${ms} ms`}>{formatDuration(ms)}</span>;
}

/** How long something has been running since `from` (seconds since the epoch or RFC 3339), up to `until`; without that it goes on each second. */
export function Running({ from, until = null }: { from: number | string; until?: number | null }) {
  const now = useNow();
  const seconds = Math.floor(until ?? now) - Math.floor(secondsOf(from));
  return <span>{formatSeconds(Math.max(0, seconds))}</span>;
}
