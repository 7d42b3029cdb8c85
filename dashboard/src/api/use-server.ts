import { useQuery } from "@tanstack/react-query";
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

/** Where clients connect to; until the server has said it, the usual path at the origin of this page. */
export function useMcpAddress(): string {
  return useServer().data?.mcp ?? `${location.origin}/mcp`;
}
