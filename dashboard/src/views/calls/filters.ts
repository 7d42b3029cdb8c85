/** The filters of /api/calls that stand in the URL of the page under the same names. */
export const FILTERS = ["tool", "toolset", "outcome", "session", "client", "label", "era", "revision", "transport", "task", "run", "from", "until", "text"] as const;

export const OUTCOMES = [
  "running",
  "completed",
  "tool_error",
  "protocol_error",
  "cancelled",
  "timed_out",
  "disconnected",
  "input_required",
  "lost",
] as const;

const CONDITION = /^(arguments|result)\./;

export function isCondition(name: string): boolean {
  return CONDITION.test(name);
}

/** What of a page's URL is a question to the audit: its filters and its conditions, in a fixed order. */
export function questionOf(params: URLSearchParams): URLSearchParams {
  const question = new URLSearchParams();
  for (const name of FILTERS) {
    const value = params.get(name);
    if (value !== null && value !== "") question.set(name, value);
  }
  for (const [name, value] of params) if (isCondition(name)) question.append(name, value);
  return question;
}

/** A condition as it is typed, `arguments.steps=5`: its name and its value, or what is wrong with it. */
export function conditionOf(typed: string): { name: string; value: string } | { wrong: string } {
  const [name = "", ...rest] = typed.split("=");
  if (!isCondition(name.trim())) return { wrong: "A condition begins with arguments. or result." };
  if (rest.length === 0) return { wrong: "A condition is a path, = and a value" };
  return { name: name.trim(), value: rest.join("=").trim() };
}

/** Which filter a refusal of the API is about: one of `FILTERS`, `condition`, or null for none of them. */
export function fieldOf(detail: string): string | null {
  const named = /^(?:there is no parameter )?["']?([\w.\\]+)/.exec(detail)?.[1] ?? "";
  if (/^(arguments|result)\b/.test(named)) return "condition";
  return FILTERS.find((name) => name === named) ?? null;
}

const pad = (value: number, width = 2) => String(value).padStart(width, "0");

/** A time of the URL (RFC 3339, or seconds since the epoch) as a datetime-local field shows it; "" if it is no time. */
export function localTime(value: string): string {
  const date = /^\d+(\.\d+)?$/.test(value) ? new Date(Number(value) * 1000) : new Date(value);
  if (value === "" || Number.isNaN(date.getTime())) return "";
  const day = `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** What a datetime-local field holds, in the reader's zone, as RFC 3339. */
export function utcTime(local: string): string {
  return local === "" ? "" : new Date(local).toISOString();
}
