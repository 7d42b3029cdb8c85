import { useCallback, useMemo, useState } from "react";

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
