import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { X } from "lucide";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Router } from "wouter";
import { ApiError, DASHBOARD, OpenFileContext } from "~/protocol/client";
import { type Feed, FeedContext } from "~/trace/feed";
import { JudgedProvider, keyOf, useJudged } from "~/trace/findings";
import { Icon } from "~/ui/badge";
import { Button } from "~/ui/buttons";
import { SkipLink } from "~/ui/page";
import { KeyValues } from "~/ui/panel";
import { NewsContext } from "~/ui/window";
import { FileMessage, FileNotice, useFileOpener } from "./file";
import { Header } from "./header";
import icon from "./icon.svg";
import drawing from "./icon.svg?raw";
import { Routes } from "./routes";
import styles from "./shell.module.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: false,
      // what the server refused it would refuse again
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError),
    },
  },
});

/** The whole page. It starts the feed and stops it with itself. */
export function App({ feed }: { feed: Feed }) {
  useEffect(() => feed.start(), [feed]);
  const { open, said, close } = useFileOpener();
  return (
    <QueryClientProvider client={queries}>
      <FeedContext value={feed}>
        <JudgedProvider>
          <Router base={DASHBOARD}>
            <News>
              <div className={styles["shell"]}>
                <SkipLink to="content" />
                <div>
                  <Header />
                  <FileNotice />
                  <FileMessage said={said} close={close} />
                </div>
                <main id="content" className={styles["main"]} tabIndex={-1}>
                  <OpenFileContext value={open}>
                    <Routes />
                  </OpenFileContext>
                </main>
                <Shortcuts />
              </div>
            </News>
          </Router>
        </JudgedProvider>
      </FeedContext>
    </QueryClientProvider>
  );
}

const SHORTCUTS = [
  ["/", "Go to the search field"],
  ["↑ ↓ Home End", "Move in a table"],
  ["Enter", "Open the row"],
  ["Escape", "Close what is open"],
  ["?", "Show this"],
] as const;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input:not([type=radio]), select, textarea") !== null;
}

/** The keys that work everywhere, and the dialog that lists them. */
function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      if (event.key === "/" && search !== null) {
        event.preventDefault();
        search.focus();
        search.select();
      }
      if (event.key === "?" && dialog.current?.open === false) dialog.current.showModal();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <dialog ref={dialog} className={`${styles["help"]} raised`} aria-labelledby="shortcuts">
      <header>
        <h2 id="shortcuts">Keys</h2>
        <Button look="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon of={X} />
        </Button>
      </header>
      <KeyValues items={SHORTCUTS.map(([keys, meaning]) => [keys, meaning])} />
    </dialog>
  );
}

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
