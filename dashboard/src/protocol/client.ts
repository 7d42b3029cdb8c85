import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, use, useEffect, useRef } from "react";
import { parseJson } from "./json";
import type { Server, SessionRow } from "./schema";

// A gateway may mount the server below a path, say of it or not, and serve other things beside it. The only one who
// always knows where these pages are is the browser: it has loaded this module from `…/dashboard/assets/`.
const here = import.meta.url;
const base = import.meta.env.PROD ? new URL("../", here).pathname : "/dashboard/";

/** The path of the dashboard, without a slash at its end: `/dashboard`, or `/probe/dashboard` below a path. */
export const DASHBOARD = base.replace(/\/$/, "");

/** The path below which the server is: empty, or `/probe`. What is asked of it begins with this. */
export const ROOT = DASHBOARD.replace(/\/dashboard$/, "");

/** The path below which the server with the live log is: another one than `ROOT` where these pages show a file that it has opened. */
const LIVE_ROOT = ROOT.replace(/\/opened\/[0-9]+$/, "");

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

/** An answer of the API that is no success: an RFC 9457 problem, or what comes nearest to one. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** Query parameters; those that are empty, null or undefined are left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** The address of something under /api, for a link or a download. */
export function apiUrl(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${ROOT}/api${path}${search === "" ? "" : `?${search}`}`;
}

/** One JSON value of the API. Throws `ApiError`, and what `fetch` throws when there is no server. */
export async function get<Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(apiUrl(path, query), { headers: { accept: "application/json" }, ...(signal && { signal }) });
  if (!response.ok) throw new ApiError(response.status, await problem(response));
  return parseJson(await response.text()) as Answer;
}

/** What the answer to a refused request says, in one line. */
async function problem(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    const { detail, title } = body as { detail?: unknown; title?: unknown };
    return String(detail ?? title ?? response.statusText);
  } catch {
    return `HTTP ${response.status} ${response.statusText}`;
  }
}

/** What the server says of itself; asked at once and every `every` ms while the page is in view, once for all when it is left out. */
export function useServer(every?: number) {
  return useQuery({
    queryKey: ["server"],
    queryFn: ({ signal }) => get<Server>("/server", {}, signal),
    ...(every !== undefined && { refetchInterval: every, refetchOnMount: "always" as const }),
  });
}

/** The name of the saved file that these pages show, null where they show the log of a server as it grows; undefined until that is known. */
export function useSavedFile(): string | null | undefined {
  const { data, error } = useServer();
  if (data !== undefined) return data.file?.name ?? null;
  if (BESIDE_LIVE) return "";
  return error === null ? undefined : null;
}

/**
 * Where clients connect to, null where the server speaks MCP on its standard input and output; until the server has said
 * it, the usual path beside this page.
 */
export function useMcpAddress(): string | null {
  const { data } = useServer();
  return data === undefined ? `${location.origin}${ROOT}/mcp` : data.mcp;
}

/**
 * Asks the server again for the queries under `key` when `version` has become another one, once in `pace` ms at most.
 *
 * A version that changes all the time makes a steady pace of questions, and not one that waits for it to rest. `key` may
 * not change.
 */
export function useRefresh(key: readonly string[], version: unknown, pace: number): void {
  const client = useQueryClient();
  const known = useRef(version);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (known.current === version) return;
    known.current = version;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: key });
    }, pace);
  });
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
}

const CAME_FROM = "mcp-probe-live";

/** Has the server read a session file and show it; the address of its pages. Throws `ApiError`, and what `fetch` throws. */
export async function openFile(file: File): Promise<string> {
  const name = new URLSearchParams({ name: file.name });
  const response = await fetch(`${LIVE_ROOT}/opened?${name}`, { method: "POST", body: file });
  if (!response.ok) throw new ApiError(response.status, await problem(response));
  const { number } = (await response.json()) as { number: number };
  return `${LIVE_ROOT}/opened/${number}/dashboard/trace`;
}

/** Leaves the live view for the pages of a file, and keeps its address for the way back. */
export function leaveFor(address: string): void {
  if (DASHBOARD === `${LIVE_ROOT}/dashboard`) sessionStorage.setItem(CAME_FROM, location.pathname + location.search);
  location.assign(address);
}

/** The address of the live view, as it was when it was left. */
export function liveAddress(): string {
  const live = `${LIVE_ROOT}/dashboard/`;
  const left = sessionStorage.getItem(CAME_FROM);
  return left?.startsWith(live) ? left : `${live}trace`;
}

/** What carries messages, in the words of the API. */
export const TRANSPORTS: readonly NonNullable<SessionRow["transport"]>[] = ["http", "websocket", "stdio"];

/** Opens a session file; what comes of it is shown below the header. */
export const OpenFileContext = createContext<(file: File) => void>(() => undefined);

export function useOpenFile(): (file: File) => void {
  return use(OpenFileContext);
}
