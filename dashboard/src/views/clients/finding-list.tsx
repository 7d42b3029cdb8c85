import { useEffect, useRef, useState } from "react";
import type { JudgedRule, RuleInfo } from "~/protocol/schema";
import { looksOf } from "~/trace/findings";
import { Badge } from "~/ui/badge";
import { Fact, Facts } from "~/ui/key-values";
import { Evidence } from "./finding-evidence";
import styles from "./report.module.css";
import { sentencesOf, shareOf } from "./rule-words";

interface Around {
  run: string;
  rules: ReadonlyMap<string, RuleInfo>;
  revisions: readonly string[];
  /** The rules that were decided a moment ago. */
  fresh: ReadonlySet<string>;
}

/** Rules with a verdict and what it rests on, the worst first. */
export function FindingList({ found, ...around }: Around & { found: readonly JudgedRule[] }) {
  const wanted = useWanted();
  const sorted = [...found.filter(({ verdict }) => verdict === "FAIL"), ...found.filter(({ verdict }) => verdict !== "FAIL")];
  return (
    <ul className={styles["findings"]}>
      {sorted.map((rule) => (
        <li key={rule.rule}>
          <Finding rule={rule} wanted={wanted === rule.rule} {...around} />
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

function Finding({ rule, wanted, ...around }: Around & { rule: JudgedRule; wanted: boolean }) {
  const { sign, word, tone } = looksOf(rule.verdict);
  const [open, setOpen] = useState(rule.verdict === "FAIL" || wanted);
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
    <details ref={details} id={rule.rule} className={`${styles["finding"]} ${fresh ? styles["fresh"] : ""}`} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Badge tone={tone}>
          {sign} {word}
        </Badge>{" "}
        <strong>{rule.title}</strong>{" "}
        <span className={styles["quiet"]}>
          <code>{rule.rule}</code>, {rule.level}, {shareOf(rule)}
          {fresh && ", decided just now"}
        </span>
      </summary>
      {open && <Body rule={rule} {...around} />}
    </details>
  );
}

function Body({ rule, run, rules, revisions }: Around & { rule: JudgedRule }) {
  const info = rules.get(rule.rule);
  return (
    <div className={styles["body"]}>
      {rule.remark !== "" && <p className={styles["remark"]}>{rule.remark}</p>}
      {info !== undefined && <Sentences info={info} revisions={revisions} />}
      <Evidence rule={rule} run={run} />
      {info !== undefined && (
        <Facts>
          <Fact name="Right is">{info.passes}</Fact>
          <Fact name="Wrong is">{info.fails}</Fact>
          {info.docs !== null && (
            <Fact name="In the documents">
              <code>{info.docs}</code>
            </Fact>
          )}
        </Facts>
      )}
      {info !== undefined && <Others info={info} />}
    </div>
  );
}

function Sentences({ info, revisions }: { info: RuleInfo; revisions: readonly string[] }) {
  return sentencesOf(info, revisions).map(({ doc, text, link }) => (
    <blockquote key={`${doc} ${text}`} className={styles["sentence"]}>
      “{text}”{" "}
      <a href={link} target="_blank" rel="noreferrer">
        {doc}
      </a>
    </blockquote>
  ));
}

/** Public bugs of other clients with the same fault. */
function Others({ info: { bugs } }: { info: RuleInfo }) {
  if (bugs.length === 0) return null;
  return (
    <div className={styles["quiet"]}>
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
