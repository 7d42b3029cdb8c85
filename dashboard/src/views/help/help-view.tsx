import { useQuery } from "@tanstack/react-query";
import { Fragment, useEffect } from "react";
import { useParams } from "wouter";
import { get } from "~/protocol/client";
import type { Tool, ToolList } from "~/protocol/schema";
import { useMcpAddress, useServer } from "~/protocol/use-server";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { SearchField } from "~/ui/search-field";
import { useUrlState } from "~/ui/url-state";
import { SERVER_TABS } from "~/widgets/server-tabs";
import { ConnectClient } from "~/widgets/connect-client";
import styles from "./help.module.css";
import { ToolDocs } from "./tool-docs";
import { Words } from "./words";

/** Goes to the tool that the address names once it is there: `/help#progress`, or `/help/progress`. */
function useAnchor(ready: boolean) {
  const { tool } = useParams<{ tool?: string }>();
  useEffect(() => {
    const go = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)) || (tool ?? ""));
      target?.scrollIntoView({ block: "start" });
      target?.focus({ preventScroll: true });
    };
    if (ready) go();
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, [ready, tool]);
}

/** How to connect a client, what each tool is for, and what the words on these pages mean. */
export default function HelpView() {
  const { data, error } = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get<ToolList>("/tools", {}, signal) });
  const defaults = useServer().data?.toolsets.filter((set) => set.default).map((set) => set.name);
  const address = useMcpAddress();
  const [text, setText] = useUrlState("text");
  useAnchor(data !== undefined);
  const wanted = text.toLowerCase();
  const tools = (data?.tools ?? []).filter((tool) => `${tool.name} ${tool.description} ${tool.exercises} ${tool.shows}`.toLowerCase().includes(wanted));
  return (
    <Page title="Server" part="Help" tabs={SERVER_TABS} scroll tools={<SearchField label="Search tools" value={text} onChange={setText} />}>
      <div className={styles["columns"]}>
        <Contents tools={tools} defaults={defaults ?? []} />
        <div className={styles["text"]}>
          <section aria-labelledby="connect">
            <h2 id="connect">Connect a client</h2>
            <ConnectClient address={address} />
          </section>
          <section aria-labelledby="tools">
            <h2 id="tools">Tools</h2>
            {error !== null && <EmptyState title="The tools could not be loaded">{error.message}</EmptyState>}
            {tools.map((tool) => (
              <ToolDocs key={tool.name} tool={tool} address={address} isDefault={defaults?.includes(tool.toolset) ?? true} />
            ))}
            {data !== undefined && tools.length === 0 && <p>No tool is about “{text}”.</p>}
          </section>
          <section aria-labelledby="words">
            <h2 id="words">Words</h2>
            <Words />
          </section>
        </div>
      </div>
    </Page>
  );
}

/** What is on the page, with a link to each tool; it stays in view. */
function Contents({ tools, defaults }: { tools: readonly Tool[]; defaults: readonly string[] }) {
  return (
    // what scrolls must be reachable by keyboard, which its links are
    <nav className={styles["contents"]} aria-label="On this page">
      <a href="#connect">Connect a client</a>
      {[...Map.groupBy(tools, (tool) => tool.toolset)].map(([set, own]) => (
        // the fixtures of the conformance suite are for few
        <details key={set} open={defaults.includes(set) && set !== "conformance"}>
          <summary>
            {set} <span className={styles["count"]}>{own.length}</span>
          </summary>
          <ul>
            {own.map(({ name }) => (
              <li key={name}>
                <a href={`#${name}`}>
                  <Breakable name={name} />
                </a>
              </li>
            ))}
          </ul>
        </details>
      ))}
      <a href="#words">Words</a>
    </nav>
  );
}

/** A name that a line may end in, behind an underscore. */
function Breakable({ name }: { name: string }) {
  return name.split("_").map((part, at) => (
    // the parts of a name never move
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={at}>
      {at > 0 && (
        <>
          _<wbr />
        </>
      )}
      {part}
    </Fragment>
  ));
}
