import type { SessionRow } from "./schema";

/** What carries messages, in the words of the API. */
export const TRANSPORTS: readonly NonNullable<SessionRow["transport"]>[] = ["http", "websocket", "stdio"];
