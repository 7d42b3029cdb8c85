import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "~/protocol/client";
import type { CallRow, ToolList } from "~/protocol/schema";

/** The names of the tools that the server has, and of those that were called, in the order of the alphabet. */
export function useKnownTools(calls: readonly CallRow[]): readonly string[] {
  const { data } = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get<ToolList>("/tools", {}, signal) });
  return useMemo(() => [...new Set([...(data?.tools ?? []).map(({ name }) => name), ...calls.map(({ tool }) => tool)])].toSorted(), [data, calls]);
}
