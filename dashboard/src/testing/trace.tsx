import type { ReactNode } from "react";
import TraceView from "~/views/trace/trace-view";
import { Story } from "./story";
import { answerApi, openView } from "./view";

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
