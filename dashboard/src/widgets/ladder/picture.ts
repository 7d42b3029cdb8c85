import { useMemo } from "react";
import type { Entry } from "~/protocol/schema";
import { type Bar, barsOf } from "./bars";
import { type LaneKey, type Step, stepsOf } from "./steps";
import type { Names } from "./words";

/** What entries of one run tell as a ladder: who takes part, what was said, and what lasted. */
export interface Picture {
  lanes: readonly LaneKey[];
  names: Names;
  steps: readonly Step[];
  bars: readonly Bar[];
}

/** The picture of the entries, which are in the order of the log. `client` is the name of the client's lane. */
export function pictureOf(entries: readonly Entry[], client: string): Picture {
  const steps = stepsOf(entries);
  const hosts = new Set(steps.flatMap(({ from, to }) => [from, to]).filter((lane) => lane.startsWith("host ")));
  const lanes: readonly LaneKey[] = ["client", "probe", ...hosts];
  const name = (lane: LaneKey) => (lane === "client" ? client : lane === "probe" ? "MCP Probe" : `tool ${lane}`);
  return { lanes, names: new Map(lanes.map((lane) => [lane, name(lane)])), steps, bars: barsOf(entries).filter(({ lane }) => lanes.includes(lane)) };
}

export function usePicture(entries: readonly Entry[], client: string): Picture {
  return useMemo(() => pictureOf(entries, client), [entries, client]);
}
