import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, Fragment, type ReactNode } from "react";
import { vi } from "vitest";
import { render } from "vitest-browser-react";
import { Route, Router } from "wouter";
import { FeedContext } from "~/trace/use-feed";
import { FakeFeed } from "./fake-source";

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
