import type { Tab } from "~/ui/tabs";

/** The parts of the view of the server. */
export const SERVER_TABS: readonly Tab[] = [
  ["/server", "Overview"],
  ["/server/streams", "Streams"],
  ["/server/limits", "Limits"],
  ["/server/hosts", "Tool hosts"],
  ["/server/help", "Help"],
];
