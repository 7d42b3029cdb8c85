import { type ReactNode, useEffect, useMemo, useState } from "react";
import { keyOf } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { NewsContext } from "~/ui/title";
import icon from "./icon.svg";
import drawing from "./icon.svg?raw";

/** Counts the findings that come while the page is out of view, in the title and the icon of its tab. */
export function News({ children }: { children: ReactNode }) {
  const { findings } = useJudged();
  const count = useUnseen(useMemo(() => findings.map(keyOf), [findings]));
  useEffect(() => showIcon(count), [count]);
  return <NewsContext value={count}>{children}</NewsContext>;
}

/** How many of the keys have come since the page went out of view; 0 while it is in view. */
function useUnseen(keys: readonly string[]): number {
  const [seen, setSeen] = useState<ReadonlySet<string> | null>(() => (document.hidden ? new Set() : null));
  useEffect(() => {
    const change = () => setSeen(document.hidden ? new Set(keys) : null);
    document.addEventListener("visibilitychange", change);
    return () => document.removeEventListener("visibilitychange", change);
  }, [keys]);
  return seen === null ? 0 : keys.filter((key) => !seen.has(key)).length;
}

// more does not fit
const MOST = 9;

function showIcon(count: number): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (link !== null) link.href = count === 0 ? icon : `data:image/svg+xml,${encodeURIComponent(withBadge(count))}`;
}

function withBadge(count: number): string {
  const text = count > MOST ? `${MOST}+` : String(count);
  const badge = `<circle cx="22" cy="22" r="10" fill="#b3261e"/><text x="22" y="27" font-family="sans-serif" font-size="14" font-weight="700" text-anchor="middle" fill="#fff">${text}</text>`;
  return drawing.replace("</svg>", `${badge}</svg>`);
}
