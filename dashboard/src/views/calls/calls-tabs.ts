import type { Tab } from "~/ui/tabs";

/** The parts of the view of the calls. */
export const CALLS_TABS: readonly Tab[] = [
  ["/calls", "Tool calls"],
  ["/calls/tasks", "Tasks"],
];
