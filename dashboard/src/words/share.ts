import type { JsonNumber } from "~/protocol/json";

/** How far something got: `4/20`, or `4` where there is no total; `?` for what is not known. */
export function shareText(done: JsonNumber | null, total: JsonNumber | null): string {
  return total === null ? `${done ?? "?"}` : `${done ?? "?"}/${total}`;
}
