/** A value inside a JSON value, or undefined where the path leads nowhere. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, step)) return undefined;
    here = (here as Record<string | number, unknown>)[step];
  }
  return here;
}

/**
 * An id or a token as JSON, so that `0` and `"0"` differ.
 *
 * A number beyond 2^53 may have lost its last digits on the way into this page, and says so; the JSON text has them.
 */
export function typedId(id: string | number): string {
  return typeof id === "number" && Number.isInteger(id) && !Number.isSafeInteger(id) ? `≈${id}` : JSON.stringify(id);
}

/** The same for a value that is read out of a message, where it may be anything. */
export function typedValue(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? typedId(value) : brief(value, 40);
}

/** The beginning of a value's JSON on one line. Stops at `room` characters, however large the value. */
export function brief(value: unknown, room = 240): string {
  const text = write(value, room);
  return text.length > room ? `${text.slice(0, room)}…` : text;
}

function write(value: unknown, room: number): string {
  if (typeof value === "string") return JSON.stringify(value.length > room ? value.slice(0, room + 1) : value);
  if (typeof value !== "object" || value === null) return value === undefined ? "" : String(value);
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
