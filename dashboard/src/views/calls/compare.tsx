import { Link } from "wouter";
import type { CallDetail } from "~/protocol/schema";
import { useCallDetail } from "~/trace/call-detail";
import { useFeed } from "~/trace/use-feed";
import { Segmented } from "~/ui/choice";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Panel, Stack } from "~/ui/panel";
import { useUrlState } from "~/ui/url-state";
import { callHref, compareHref } from "./calls";
import styles from "./calls.module.css";
import { CompareFields } from "./compare-fields";
import { CompareJson } from "./compare-json";
import { CompareMessages } from "./compare-messages";

const SHOWN = [
  { value: "", label: "All" },
  { value: "differences", label: "Differences" },
];

function useCompared(id: string) {
  const row = useFeed((snapshot) => snapshot.tables.calls.find((call) => call.id === id));
  return useCallDetail(id === "" ? null : id, row);
}

/** Two calls side by side: their fields, their arguments and results, and their messages. */
export default function CompareView() {
  const [a] = useUrlState("a");
  const [b] = useUrlState("b");
  const [only, setOnly] = useUrlState("show");
  const [ofA, ofB] = [useCompared(a), useCompared(b)];
  const error = ofA.error ?? ofB.error;
  const tools = (
    <nav className={styles["links"]} aria-label="Compared calls">
      <Segmented label="Show" options={SHOWN} value={only} onChange={setOnly} />
      <Link href={callHref(a)}>A: {a}</Link>
      <Link href={callHref(b)}>B: {b}</Link>
      <Link href={compareHref(b, a)}>Swap</Link>
    </nav>
  );
  if (a === "" || b === "") return <NothingChosen />;
  return (
    <Page title="Compare two calls" tools={tools} scroll>
      {error !== null && <EmptyState title="A call could not be read"><p role="alert">{error.message}</p></EmptyState>}
      {error === null && ofA.data && ofB.data && <Compared a={ofA.data} b={ofB.data} only={only !== ""} />}
    </Page>
  );
}

function NothingChosen() {
  return (
    <Page title="Compare two calls">
      <EmptyState title="Choose two calls">
        <p>
          Check two calls in the <Link href="/calls">list of calls</Link>, or open a call and compare it with the previous one of
          the same tool.
        </p>
      </EmptyState>
    </Page>
  );
}

function Compared({ a, b, only }: { a: CallDetail; b: CallDetail; only: boolean }) {
  return (
    <Stack>
      <Panel title="Fields">
        <CompareFields a={a.call} b={b.call} only={only} />
      </Panel>
      <Panel title="Arguments">
        <CompareJson label="Arguments" a={a.call.arguments} b={b.call.arguments} only={only} />
      </Panel>
      <Panel title="Result">
        <CompareJson label="Result" a={a.call.result} b={b.call.result} only={only} />
      </Panel>
      <Panel title="Messages">
        {!(a.evidence.complete && b.evidence.complete) && <p>The evidence of {incomplete(a, b)} is incomplete.</p>}
        <CompareMessages a={a.evidence.events} b={b.evidence.events} only={only} />
      </Panel>
    </Stack>
  );
}

function incomplete(a: CallDetail, b: CallDetail): string {
  if (a.evidence.complete) return "B";
  return b.evidence.complete ? "A" : "A and B";
}
