import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { traceHref } from "~/protocol/client";
import type { JudgedExample, JudgedRule, RuleInfo } from "~/protocol/schema";
import type { Viewed } from "~/trace/entry";
import { faultOf, isFinding, looksOf } from "~/trace/findings";
import { useEntry } from "~/trace/use-trace";
import { Badge } from "~/ui/badge";
import { Fact, Facts, KeyValues } from "~/ui/panel";
import { Time } from "~/ui/time";
import { usePrinting } from "~/ui/window";
import { DirectionBadge } from "~/widgets/badges";
import { describe, kindOf } from "~/words/entries";
import styles from "./report.module.css";
import { byWorst, LEVELS, sentencesOf, shareOf } from "./rule-words";

interface Around {
  run: string;
  rules: ReadonlyMap<string, RuleInfo>;
  revisions: readonly string[];
  /** The rules that were decided a moment ago. */
  fresh: ReadonlySet<string>;
}

interface FindingListProps extends Around {
  found: readonly JudgedRule[];
  /** Whether the first one is open from the beginning. */
  opened?: boolean;
}

/** Rules with a verdict and what it rests on, the worst first. One that is folded opens by a click; on paper all are open. */
export function FindingList({ found, opened = false, ...around }: FindingListProps) {
  const wanted = useWanted();
  return (
    <ul className={styles["findings"]}>
      {found.toSorted(byWorst).map((rule, at) => (
        <li key={rule.rule}>
          <Finding rule={rule} opened={opened && at === 0} wanted={wanted === rule.rule} {...around} />
        </li>
      ))}
    </ul>
  );
}

/** The rule that the address names: `#cancel.own-request`. */
function useWanted(): string {
  const [hash, setHash] = useState(() => location.hash);
  useEffect(() => {
    const read = () => setHash(location.hash);
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return decodeURIComponent(hash.slice(1));
}

function Finding({ rule, opened, wanted, ...around }: Around & { rule: JudgedRule; opened: boolean; wanted: boolean }) {
  const { sign, word, tone } = looksOf(rule.verdict);
  const [open, setOpen] = useState(opened || wanted);
  const printing = usePrinting();
  const details = useRef<HTMLDetailsElement>(null);
  const fresh = around.fresh.has(rule.rule);
  useEffect(() => {
    const element = details.current;
    if (!wanted || element === null) return;
    element.open = true;
    element.scrollIntoView({ block: "start" });
    element.querySelector("summary")?.focus({ preventScroll: true });
  }, [wanted]);
  return (
    <details
      ref={details}
      id={rule.rule}
      className={`${styles["finding"]} ${fresh ? styles["fresh"] : ""}`}
      open={open || printing}
      onToggle={(event) => {
        if (!printing) setOpen(event.currentTarget.open);
      }}
    >
      <summary>
        <Badge tone={tone} title={word}>
          <span aria-label={word}>{sign}</span>
        </Badge>
        <strong>{isFinding(rule) ? faultOf(rule) : rule.title}</strong>
        <span className="aside">
          {LEVELS[rule.level]}, {shareOf(rule)}
          {fresh && ", decided just now"}
        </span>
      </summary>
      <Body rule={rule} {...around} />
    </details>
  );
}

function Body({ rule, run, rules, revisions }: Around & { rule: JudgedRule }) {
  const info = rules.get(rule.rule);
  return (
    <div className={`${styles["body"]} column`}>
      <Facts>
        {rule.remark !== "" && (
          <Fact name="Found">
            <strong>{rule.remark}</strong>
          </Fact>
        )}
        {info !== undefined && <Fact name="Expected">{info.passes}</Fact>}
        <Fact name="Rule">
          {rule.title} <code className="aside">{rule.rule}</code>
        </Fact>
        {info !== undefined && <Fact name="A check is">{info.observe}</Fact>}
      </Facts>
      {info !== undefined && <Sentences info={info} revisions={revisions} />}
      <Evidence rule={rule} run={run} />
      {info !== undefined && <Others info={info} />}
      {info !== undefined && <About info={info} />}
    </div>
  );
}

function Sentences({ info, revisions }: { info: RuleInfo; revisions: readonly string[] }) {
  return sentencesOf(info, revisions).map(({ text, pages }) => (
    <blockquote key={text} className={styles["sentence"]}>
      “{text}”
      <br />
      {pages.map(({ doc, link }) => (
        <a key={doc} href={link} target="_blank" rel="noreferrer">
          {doc}
        </a>
      ))}
    </blockquote>
  ));
}

/** Public bugs of other clients with the same fault. */
function Others({ info: { bugs } }: { info: RuleInfo }) {
  if (bugs.length === 0) return null;
  return (
    <div className="aside">
      <p>Other clients had this fault:</p>
      <ul className={styles["bugs"]}>
        {bugs.map(({ ref, about, link }) => (
          <li key={ref}>
            {link === null ? (
              ref
            ) : (
              <a href={link} target="_blank" rel="noreferrer">
                {ref}
              </a>
            )}
            : {about}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What the judge looks at, and what it makes of it. */
function About({ info: { fails, silent, provoke, risk, transports } }: { info: RuleInfo }) {
  return (
    <details>
      <summary>About this rule</summary>
      <KeyValues
        items={[
          ["Fails", fails],
          ["No verdict", silent],
          ["How to try it", provoke],
          ["Could be wrong", risk],
          ["Over", transports.join(", ")],
        ]}
      />
    </details>
  );
}

interface EvidenceProps {
  run: string;
  rule: Pick<JudgedRule, "verdict" | "remark" | "examples" | "count" | "counts" | "breaches">;
}

/** The first and the last opportunity with the verdict of the rule, and the entries that each rests on. */
function Evidence({ run, rule }: EvidenceProps) {
  const examples = rule.examples.filter(({ verdict, entries }) => verdict === rule.verdict && entries.length > 0);
  const count = rule.counts[rule.verdict] ?? 0;
  if (examples.length === 0) return null;
  return (
    <div>
      <h3>
        Evidence{count > examples.length && <span className="aside">, {examples.length} of {count}</span>}
      </h3>
      <ol className={`${styles["evidence"]} column`}>
        {examples.map((example) => (
          <li key={example.entries.join(" ")}>
            <Example run={run} example={example} remark={rule.remark} breaches={rule.breaches} />
          </li>
        ))}
      </ol>
    </div>
  );
}

interface ExampleProps {
  run: string;
  example: JudgedExample;
  remark: string;
  /** The entries that break the rule; the others only show why. */
  breaches: readonly number[];
}

function Example({ run, example: { entries, remark, verdict }, remark: said, breaches }: ExampleProps) {
  return (
    <>
      {remark !== "" && remark !== said && <p>{remark}</p>}
      <ul className={styles["entries"]}>
        {entries.map((seq) => (
          <li key={seq}>
            <Entry run={run} seq={seq} breach={breaches.includes(seq) ? verdict : null} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Which way a message went; of what is no message the kind of entry. */
function Direction({ of }: { of: Viewed }) {
  const { direction } = of.view;
  return direction === null ? <span className="aside">{kindOf(of.kind)}</span> : <DirectionBadge direction={direction} />;
}

/** An entry that a verdict rests on; `breach` is the verdict on one that is against the rule. */
function Entry({ run, seq, breach }: { run: string; seq: number; breach: JudgedExample["verdict"] | null }) {
  const { data, error } = useEntry(run, seq);
  return (
    <>
      <Link href={traceHref({ at: `${run}-${seq}` })}>#{seq}</Link>
      {data !== undefined && (
        <span>
          <Time at={data.at} /> <Direction of={data} /> {describe(data, data.view.method)} {breach !== null && <Badge tone={looksOf(breach).tone}>{breach === "FAIL" ? "breaks it" : "against it"}</Badge>}
        </span>
      )}
      {error !== null && <span className="aside">no longer in the log</span>}
    </>
  );
}
