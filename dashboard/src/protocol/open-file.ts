import { DASHBOARD, LIVE_ROOT } from "./address";
import { ApiError, problem } from "./client";

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
