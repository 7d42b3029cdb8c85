import type { Entry } from "~/protocol/schema";

type HostLane = `host ${string}`;

/** The names of tool hosts by their connections, as the entries tell them. */
export class HostNames {
  readonly #names = new Map<string, string>();

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      const host = "host" in entry ? entry.host : null;
      if (host !== null && entry.connection !== null) this.#names.set(entry.connection, host);
    }
  }

  /** The lane of the host that an entry is about; by its connection where no entry names it. */
  laneOf(entry: Entry): HostLane {
    const own = "host" in entry ? entry.host : null;
    return `host ${own ?? this.#names.get(entry.connection ?? "") ?? entry.connection ?? "?"}`;
  }
}
