import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { get } from "~/protocol/client";
import type { JudgedSubject, RuleInfo, ToolList } from "~/protocol/schema";
import { useMcpAddress, useServer } from "~/protocol/use-server";
import { Button } from "~/ui/button";
import { CodeBlock } from "~/ui/code-block";
import { CopyButton } from "~/ui/copy-button";
import { Panel } from "~/ui/panel";
import { usePrinting } from "~/ui/use-printing";
import { counted } from "~/words/counted";
import { type Act, actsOf, callText, promptOf, promptable } from "./acts";
import styles from "./report.module.css";

// as much as a model does in one go
const PROMPTED = 8;
// what reaches one rule each comes in the end and is long
const SHOWN = 12;

/** What was not observed, by what reaches it. */
export function Checklist({ subject, rules }: { subject: JudgedSubject; rules: ReadonlyMap<string, RuleInfo> }) {
  const tools = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => get<ToolList>("/tools", {}, signal) }).data?.tools;
  const { acts, beyond } = useMemo(() => actsOf(subject.verdicts, rules, tools ?? []), [subject.verdicts, rules, tools]);
  const served = useServed();
  const [all, setAll] = useState(false);
  const printing = usePrinting();
  if (acts.length === 0 && beyond.length === 0) return null;
  const shown = all || printing ? acts : acts.slice(0, SHOWN);
  return (
    <Panel title={`What to try next: ${counted(subject.summary["NOT_OBSERVED"] ?? 0, "rule")} not observed`}>
      <p className={styles["quiet"]}>Not observed means never exercised, so there is no verdict. Each step exercises the rules beside it.</p>
      {acts.length > 0 && <Commands acts={promptable(acts, served ?? [])} label={subject.kind === "label" ? subject.label : null} />}
      <ol className={styles["acts"]} aria-label="What to try next">
        {shown.map((act) => (
          <li key={act.text}>
            <Step act={act} served={served} />
          </li>
        ))}
      </ol>
      {acts.length > SHOWN && !printing && (
        <Button small aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show ${acts.length - SHOWN} more`}
        </Button>
      )}
      {beyond.length > 0 && (
        <details className={styles["more"]}>
          <summary>{counted(beyond.length, "rule")} that this server cannot exercise yet</summary>
          <RuleTitles rules={beyond} />
        </details>
      )}
    </Panel>
  );
}

/** The toolsets that a client gets that does not choose; null until they are known. */
function useServed(): readonly string[] | null {
  const { data } = useServer();
  return useMemo(() => data?.toolsets.filter((set) => set.default).map(({ name }) => name) ?? null, [data]);
}

/** The same for programs, and for clients with a model. */
function Commands({ acts, label }: { acts: readonly Act[]; label: string | null }) {
  const address = useMcpAddress();
  return (
    <div className={styles["commands"]}>
      <CodeBlock title="Run your client under the judge" code="mcp-probe judge -- CLIENT ARGS" wrap />
      {address !== null && <CodeBlock title="Or connect it here under its name" code={`${address}?client=${label ?? "NAME"}`} wrap />}
      {acts.length > 0 && <CodeBlock title="Prompt for a client with a model" code={promptOf(acts.slice(0, PROMPTED))} wrap />}
    </div>
  );
}

function Step({ act, served }: { act: Act; served: readonly string[] | null }) {
  const { text, rules, calls, command } = act;
  const beside = [...new Set(calls.map(({ tool }) => tool.toolset))].filter((name) => served !== null && !served.includes(name));
  return (
    <>
      <details className={styles["act"]}>
        <summary>
          <span className={styles["quiet"]}>{counted(rules.length, "rule")}</span>
          <strong>{text}</strong>
        </summary>
        {calls.map((call) => (
          <p key={callText(call)}>
            <Link href={`/server/help/${call.tool.name}`}>{call.tool.name}</Link> <code>{callText(call)}</code>
          </p>
        ))}
        {command !== null && (
          <p>
            <code>{command}</code>
          </p>
        )}
        <RuleTitles rules={rules} />
      </details>
      <span className={styles["links"]}>
        {calls.length > 0 && <CopyButton label={calls.length === 1 ? "Copy call" : "Copy calls"} text={calls.map(callText).join("\n")} />}
        {command !== null && <CopyButton label="Copy command" text={command} />}
        <CopyButton label="Copy prompt" text={promptOf([act])} />
      </span>
      {beside.length > 0 && (
        <p className={styles["quiet"]}>
          Connect to <code>?tools={beside.join(",")}</code> for it.
        </p>
      )}
    </>
  );
}

function RuleTitles({ rules }: { rules: readonly RuleInfo[] }) {
  return (
    <ul className={styles["titles"]}>
      {rules.map(({ rule, title, observe }) => (
        <li key={rule}>
          {title} <span className={styles["quiet"]}><code>{rule}</code>, exercised when: {observe}</span>
        </li>
      ))}
    </ul>
  );
}
