import { useCallback } from "react";
import { useSearchParams } from "wouter";

/**
 * One parameter of the URL as state: its value, or `fallback`, and a function to set it.
 *
 * Setting the fallback takes the parameter out. `push` makes a step for the browser's back button, which is right for
 * something opened and wrong for a filter being typed.
 */
export function useUrlState(name: string, fallback = "", push = false): [string, (value: string) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (value: string) => {
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          if (value === fallback) after.delete(name);
          else after.set(name, value);
          return after;
        },
        { replace: !push },
      );
    },
    [name, fallback, push, setParams],
  );
  return [params.get(name) ?? fallback, set];
}
