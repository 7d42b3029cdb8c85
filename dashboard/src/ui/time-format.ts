const pad = (value: number, width = 2) => String(value).padStart(width, "0");

/** Milliseconds as people read them: `0.4 ms`, `87 ms`, `1.53 s`, `4 min 07 s`, `2 h 05 min`. */
export function formatDuration(ms: number): string {
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${pad(seconds % 60)} s`;
  const minutes = Math.floor(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

/** Whole seconds as people read them: `34 s`, `4 min 07 s`, `2 h 05 min`. */
export function formatSeconds(seconds: number): string {
  return seconds < 60 ? `${Math.round(seconds)} s` : formatDuration(Math.round(seconds) * 1000);
}

/** A time that somebody set: whole seconds are said as such. */
export function formatLimit(ms: number): string {
  return ms % 1000 === 0 ? formatSeconds(ms / 1000) : formatDuration(ms);
}

/** How long before `now` (both in seconds since the epoch): `now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`. */
export function formatAgo(at: number, now: number): string {
  const seconds = Math.max(0, Math.floor(now - at));
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** The wall clock of the reader with milliseconds: `14:03:22.118`. `at` in seconds since the epoch. */
export function formatClock(at: number): string {
  const date = new Date(at * 1000);
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return `${time}.${pad(date.getMilliseconds(), 3)}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The wall clock as `formatClock`, of another day than that of `now` with its date and without milliseconds: `22 Nov 14:03:22`; of another year with that too. */
export function formatMoment(at: number, now: number = Date.now() / 1000): string {
  const [date, today] = [new Date(at * 1000), new Date(now * 1000)];
  if (date.toDateString() === today.toDateString()) return formatClock(at);
  const year = date.getFullYear() === today.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year} ${formatClock(at).slice(0, 8)}`;
}

/** Seconds since the epoch, from either form in which the API gives times. */
export function secondsOf(at: number | string): number {
  return typeof at === "number" ? at : Date.parse(at) / 1000;
}

/** A distance from the moment that is counted from: `+12 ms`, `−0.3 ms`, `0 ms`. */
export function formatOffset(ms: number): string {
  const text = formatDuration(Math.abs(ms));
  if (text === "0 ms") return text;
  return `${ms < 0 ? "−" : "+"}${text}`;
}
