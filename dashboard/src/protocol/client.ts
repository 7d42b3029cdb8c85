import { ROOT } from "./address";
import { parseJson } from "./json";

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
export async function problem(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    const { detail, title } = body as { detail?: unknown; title?: unknown };
    return String(detail ?? title ?? response.statusText);
  } catch {
    return `HTTP ${response.status} ${response.statusText}`;
  }
}
