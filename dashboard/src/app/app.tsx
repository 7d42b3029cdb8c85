import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { Router } from "wouter";
import { DASHBOARD } from "~/protocol/address";
import { ApiError } from "~/protocol/client";
import type { Feed } from "~/trace/feed";
import { FeedContext } from "~/trace/use-feed";
import { JudgedProvider } from "~/trace/use-judged";
import { SkipLink } from "~/ui/skip-link";
import { OpenFileContext } from "~/widgets/open-file";
import { FileMessage, useFileOpener } from "./dropped-file";
import { FileNotice } from "./file-notice";
import { Header } from "./header";
import { News } from "./news";
import { Routes } from "./routes";
import styles from "./shell.module.css";
import { Shortcuts } from "./shortcuts";

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
