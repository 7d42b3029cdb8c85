import { useQuery } from "@tanstack/react-query";
import { ROOT } from "./address";
import { get } from "./client";
import type { Server } from "./schema";

/** What the server says of itself; asked again every `every` ms while the page is in view, once when it is left out. */
export function useServer(every?: number) {
  return useQuery({
    queryKey: ["server"],
    queryFn: ({ signal }) => get<Server>("/server", {}, signal),
    ...(every !== undefined && { refetchInterval: every }),
  });
}

/**
 * Where clients connect to, null where the server speaks MCP on its standard input and output; until the server has said
 * it, the usual path beside this page.
 */
export function useMcpAddress(): string | null {
  const { data } = useServer();
  return data === undefined ? `${location.origin}${ROOT}/mcp` : data.mcp;
}
