import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { Router } from "wouter";
import { DASHBOARD } from "~/api/address";
import { ApiError } from "~/api/client";
import type { Feed } from "~/feed/feed";
import { FeedContext } from "~/feed/use-feed";
import { JudgedProvider } from "~/judged/use-judged";
import { DroppedFile } from "~/shell/dropped-file";
import { FileNotice } from "~/shell/file-notice";
import { Header } from "~/shell/header";
import { News } from "~/shell/news";
import { Routes } from "~/shell/routes";
import styles from "~/shell/shell.module.css";
import { Shortcuts } from "~/shell/shortcuts";
import { SkipLink } from "~/ui/skip-link";

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
                  <DroppedFile />
                </div>
                <main id="content" className={styles["main"]} tabIndex={-1}>
                  <Routes />
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
