import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

/**
 * Asks the server again for the queries under `key` when `version` has become another one, once in `pace` ms at most.
 *
 * A version that changes all the time makes a steady pace of questions, and not one that waits for it to rest. `key` may
 * not change.
 */
export function useRefresh(key: readonly string[], version: unknown, pace: number): void {
  const client = useQueryClient();
  const known = useRef(version);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (known.current === version) return;
    known.current = version;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: key });
    }, pace);
  });
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
}
