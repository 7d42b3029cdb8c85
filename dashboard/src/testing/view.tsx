import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, Fragment, type ReactNode } from "react";
import { vi } from "vitest";
import { render } from "vitest-browser-react";
import { Route, Router } from "wouter";
import { FeedContext } from "~/trace/feed";
import TraceView from "~/views/trace/trace-view";
import { FakeFeed } from "./fake-source";
import { Story } from "./story";

/** Shows one view at a path under /dashboard, with a feed that the test plays; its frames are drawn by `show`. */
export async function openView(view: ComponentType, route: string, path: string, Around: ComponentType<{ children: ReactNode }> = Fragment) {
  history.replaceState(null, "", `/dashboard${path}`);
  const fake = new FakeFeed();
  const stop = fake.feed.start();
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: 2_000 } } });
  const screen = await render(
    <QueryClientProvider client={client}>
      <FeedContext value={fake.feed}>
        <Router base="/dashboard">
          <Around>
            <main className="test-view">
              <Route path={route} component={view} />
            </main>
          </Around>
        </Router>
      </FeedContext>
    </QueryClientProvider>,
  );
  const show = (rows: Readonly<Record<string, readonly object[]>>, run?: string) => {
    if (run !== undefined) fake.source.hello(run);
    for (const [table, changed] of Object.entries(rows)) fake.source.say("rows", { table, rows: changed });
    fake.frame();
  };
  return { fake, screen, show, stop };
}

/** Answers requests to /api from a function of the path and the query; what it returns as undefined is a 404. */
export function answerApi(answer: (path: string, query: URLSearchParams) => unknown) {
  const asked: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const url = new URL(String(input), location.href);
    asked.push(`${url.pathname}${url.search}`);
    const body = await answer(url.pathname, url.searchParams);
    if (body instanceof Response) return body;
    if (body !== undefined) return Response.json(body);
    return Response.json({ title: "Not Found", status: 404, detail: "there is no such thing" }, { status: 404 });
  });
  return asked;
}

/** As high as a window is, as the frame of the page makes its views. */
function Window({ children }: { children: ReactNode }) {
  return <div style={{ display: "grid", gridTemplateRows: "minmax(0, 1fr)", height: "800px" }}>{children}</div>;
}

type Answer = (path: string, query: URLSearchParams) => unknown;

/** The trace at an address with a query, of a story in run `a`; `answer` is what the API says. */
export async function openTrace(query: string, story = new Story(), answer: Answer = () => undefined) {
  localStorage.clear();
  const asked = answerApi((path, params) => answer(path, params) ?? (path === "/api/filter" ? { error: null, completions: [] } : undefined));
  const view = await openView(TraceView, "/trace", `/trace${query}`, Window);
  const frame = () => view.fake.frame();
  view.fake.source.hello("a", { id: "a-0" });
  const play = (of: Story = story, run = "a") => of.play({ feed: view.fake.feed, source: view.fake.source, frame }, run);
  play();
  return { ...view, asked, play };
}

/** What the rows of a table say, in their order; its head is none of them. */
export const rowTexts = () => [...document.querySelectorAll("[role=row][tabindex]")].map((row) => row.textContent);
