/** A number of JSON. One with more digits than a double can hold is a bigint. */
export type JsonNumber = number | bigint;

/** A JSON value of one word. */
export type Scalar = string | JsonNumber | boolean | null;

// browsers got both together: the source of a number in `parse`, and a way to write one into `stringify`
const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };

// a number that a double cannot hold has at least 16 digits; looking at each value of a text makes reading much slower
const LONG = /\d{16}/;
const INTEGER = /^-?\d+$/;

function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && INTEGER.test(source) ? BigInt(source) : value;
}

/**
 * Reads JSON. Integers beyond 2^53 become bigints, so that two that differ never look equal.
 *
 * A browser that does not tell how a number was written gives the nearest double instead; `isRounded` knows them.
 */
export function parseJson(text: string): unknown {
  return LONG.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

/** Whether a number may have lost digits on its way into this page. */
export function isRounded(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
}

function written(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return rawJSON === undefined ? String(value) : rawJSON(String(value));
  return isRounded(value) ? `≈${String(value)}` : value;
}

/** Writes JSON with all digits; of a number whose digits are not known, `"≈…"`. */
export function writeJson(value: unknown, indent?: number): string {
  // a replacer is asked for each member, and large numbers are rare
  if (rawJSON === undefined) return JSON.stringify(value, written, indent);
  try {
    return JSON.stringify(value, undefined, indent);
  } catch {
    return JSON.stringify(value, written, indent);
  }
}

/** A value of one word as JSON, so that `0` and `"0"` differ; "≈" before a number that may have lost digits. */
export function scalarText(value: Scalar): string {
  if (typeof value === "string") return JSON.stringify(value);
  return isRounded(value) ? `≈${String(value)}` : String(value);
}

/** The beginning of a value's JSON on one line; "" for undefined. Stops at `room` characters, however large the value. */
export function brief(value: unknown, room = 240): string {
  const text = write(value, room);
  return text.length > room ? `${text.slice(0, room)}…` : text;
}

function write(value: unknown, room: number): string {
  if (typeof value === "string") return JSON.stringify(value.length > room ? value.slice(0, room + 1) : value);
  if (typeof value !== "object" || value === null) return value === undefined ? "" : scalarText(value as Scalar);
  const isArray = Array.isArray(value);
  const parts: string[] = [];
  let used = 0;
  for (const key of Object.keys(value)) {
    if (used > room) break;
    const member = write((value as Record<string, unknown>)[key], room - used);
    const part = isArray ? member : `${JSON.stringify(key)}:${member}`;
    parts.push(part);
    used += part.length + 1;
  }
  return isArray ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
}

/** A value inside a JSON value, or undefined where the path leads nowhere. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, step)) return undefined;
    here = (here as Record<string | number, unknown>)[step];
  }
  return here;
}
