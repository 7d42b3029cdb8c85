import { createContext, use, useEffect } from "react";

/** How many things are new while nobody looks; every title begins with it. */
export const NewsContext = createContext(0);

/** Names the page in the browser's tab, as long as the component is shown. */
export function useTitle(title: string): void {
  const news = use(NewsContext);
  useEffect(() => {
    document.title = `${news === 0 ? "" : `(${news}) `}${title} · MCP Probe`;
  }, [news, title]);
}
