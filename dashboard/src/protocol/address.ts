// A gateway may mount the server below a path, say of it or not, and serve other things beside it. The only one who
// always knows where these pages are is the browser: it has loaded this module from `…/dashboard/assets/`.
const here = import.meta.url;
const base = import.meta.env.PROD ? new URL("../", here).pathname : "/dashboard/";

/** The path of the dashboard, without a slash at its end: `/dashboard`, or `/probe/dashboard` below a path. */
export const DASHBOARD = base.replace(/\/$/, "");

/** The path below which the server is: empty, or `/probe`. What is asked of it begins with this. */
export const ROOT = DASHBOARD.replace(/\/dashboard$/, "");

/** The path below which the server with the live log is: another one than `ROOT` where these pages show a file that it has opened. */
export const LIVE_ROOT = ROOT.replace(/\/opened\/[0-9]+$/, "");

/** Whether these pages show a file beside a server whose live log is one click away. */
export const BESIDE_LIVE = LIVE_ROOT !== ROOT;

export interface TracePlace {
  /** The filter line. */
  filter?: string;
  /** The entry that is shown: its number, or `RUN-NUMBER`. */
  at?: string | number;
  /** `all` for a line for each entry. */
  view?: "ladder" | "all";
}

/** The address of the page Trace with something to see. */
export const traceHref = (place: TracePlace): string => `/trace?${new URLSearchParams(Object.entries(place).map(([name, value]) => [name, String(value)]))}`;
