import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { get, useMcpAddress, useServer } from "~/protocol/client";
import { writeJson } from "~/protocol/json";
import type { JudgedRule, JudgedSubject, RuleInfo, Tool, ToolList } from "~/protocol/schema";
import { Button, CopyButton } from "~/ui/buttons";
import { CodeBlock, Panel } from "~/ui/panel";
import { usePrinting } from "~/ui/window";
import { counted } from "~/words/text";
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
      <p className={`${styles["said"]} aside`}>Not observed means never exercised, so there is no verdict. Each step exercises the rules beside it.</p>
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
          <span className="aside">{counted(rules.length, "rule")}</span>
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
      <span className="row">
        {calls.length > 0 && <CopyButton label={calls.length === 1 ? "Copy call" : "Copy calls"} text={calls.map(callText).join("\n")} />}
        {command !== null && <CopyButton label="Copy command" text={command} />}
        <CopyButton label="Copy prompt" text={promptOf([act])} />
      </span>
      {beside.length > 0 && (
        <p className={`${styles["said"]} aside`}>
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
          {title} <span className="aside"><code>{rule}</code>, exercised when: {observe}</span>
        </li>
      ))}
    </ul>
  );
}

/** Something that a person or a model makes the client do, and the rules that come into reach by it. */
interface Act {
  text: string;
  rules: readonly RuleInfo[];
  calls: readonly ToolCall[];
  /** A command that starts the server as the act needs it, where that is not how it usually runs. */
  command: string | null;
}

interface ToolCall {
  tool: Tool;
  arguments: Readonly<Record<string, unknown>>;
}

export const AS_USUAL = "Use the client as usual";

interface Ahead {
  /** Those that reach most rules first. */
  acts: readonly Act[];
  /** Rules that this server gives no opportunity for. */
  beyond: readonly RuleInfo[];
}

/** What reaches the rules that were not observed. */
export function actsOf(verdicts: readonly JudgedRule[], rules: ReadonlyMap<string, RuleInfo>, tools: readonly Tool[]): Ahead {
  const missing = verdicts.filter(({ verdict }) => verdict === "NOT_OBSERVED").flatMap(({ rule }) => rules.get(rule) ?? []);
  const beyond = missing.filter((rule) => rule.needs_drill);
  const byText = new Map<string, RuleInfo[]>();
  for (const rule of missing) {
    if (rule.needs_drill) continue;
    const text = textOf(rule);
    byText.set(text, [...(byText.get(text) ?? []), rule]);
  }
  const acts = [...byText].map(([text, reached]) => {
    const calls = callsIn(text, tools);
    const isCall = calls[0] !== undefined && text.startsWith(calls[0].tool.name);
    return { text: isCall ? `call ${text}` : text, rules: reached, calls, command: commandIn(text) };
  });
  return { acts: acts.toSorted((a, b) => b.rules.length - a.rules.length || a.text.localeCompare(b.text)), beyond };
}

/**
 * `passive` in the catalogue means that the opportunity comes with whatever the client does, and a `drill` is what this
 * server cannot do yet.
 */
function textOf({ provoke }: RuleInfo): string {
  return provoke.replace(/[;,]?\s*(or )?drill `.*$/, "").replace(/^passive\s*[;:,]?\s*/, "") || AS_USUAL;
}

/** The calls that a text names: `progress {"steps": 5}`, or a name alone. */
function callsIn(text: string, tools: readonly Tool[]): readonly ToolCall[] {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return [...text.matchAll(/\b([a-z][a-z0-9_]*)\b(?:\s*(\{[^{}]*\}))?/g)].flatMap(([, name = "", given]) => {
    const tool = byName.get(name);
    return tool === undefined ? [] : [{ tool, arguments: argumentsIn(given) }];
  });
}

function argumentsIn(given: string | undefined): Readonly<Record<string, unknown>> {
  try {
    return given === undefined ? {} : (JSON.parse(given) as Record<string, unknown>);
  } catch {
    return {};
  }
}

/** The server's command with the settings that a text names: `--ping-interval-s 5`. */
function commandIn(text: string): string | null {
  const options = [...text.matchAll(/--[a-z][a-z0-9-]* [0-9]+/g)].map(([option]) => option);
  return options.length === 0 ? null : `mcp-probe serve ${options.join(" ")}`;
}

/** The parameters of `tools/call`, to copy into a client. */
export function callText({ tool, arguments: given }: ToolCall): string {
  return writeJson({ name: tool.name, arguments: given }, 0);
}

// what it does is enough for most of the rules that need nothing special
const USUAL =
  "list its tools, resources and prompts; call simple_tool; call progress with 20 steps of 200 ms and report the progress; call fail; " +
  "call silent_call and cancel it after two seconds";

/** What a client with a model can do by itself: use the client, or call tools that are served to it. */
export function promptable(acts: readonly Act[], toolsets: readonly string[]): readonly Act[] {
  return acts.filter(({ text, calls, command }) => text === AS_USUAL || (calls.length > 0 && command === null && calls.every(({ tool }) => toolsets.includes(tool.toolset))));
}

/** A text for a client with a model. */
export function promptOf(acts: readonly Pick<Act, "text">[]): string {
  const steps = acts.map(({ text }) => (text === AS_USUAL ? USUAL : text));
  if (steps.length === 1) return `Use the MCP server mcp-probe and do this, with the tools of these names: ${steps[0]}. Then say what came of it.`;
  return `Use the MCP server mcp-probe and do the following one after the other, with the tools of these names.\n${steps.map((step, at) => `${at + 1}. ${step}`).join("\n")}\nThen say what came of each.`;
}
