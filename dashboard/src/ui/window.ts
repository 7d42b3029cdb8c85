import { createContext, use, useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { flushSync } from "react-dom";
import { useSearchParams } from "wouter";

/** How many things are new while nobody looks; every title begins with it. */
export const NewsContext = createContext(0);

/** Names the page in the browser's tab, as long as the component is shown. */
export function useTitle(title: string): void {
  const news = use(NewsContext);
  useEffect(() => {
    document.title = `${news === 0 ? "" : `(${news}) `}${title} · MCP Probe`;
  }, [news, title]);
}

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

/** Whether the window is no wider than this; by default, where the style sheets make one column of the page. */
export function useNarrow(width = "48rem"): boolean {
  const query = `(max-width: ${width})`;
  const subscribe = useCallback(
    (listener: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}

/** The width of an element in pixels, 0 before it is known, and the callback that takes the element. */
export function useWidth(): [number, (element: HTMLElement | null) => void] {
  const [width, setWidth] = useState(0);
  const observer = useMemo(() => new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0)), []);
  const take = useCallback(
    (element: HTMLElement | null) => {
      observer.disconnect();
      if (element === null) return;
      // the observer tells only after the first picture
      setWidth(element.clientWidth);
      observer.observe(element);
    },
    [observer],
  );
  return [width, take];
}

/** Whether the page is being printed; what depends on it is there before the browser looks. */
export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const begin = () => flushSync(() => setPrinting(true));
    const end = () => setPrinting(false);
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  return printing;
}
