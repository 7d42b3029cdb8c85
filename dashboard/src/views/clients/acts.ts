import { writeJson } from "~/protocol/json";
import type { JudgedRule, RuleInfo, Tool } from "~/protocol/schema";

/** Something that a person or a model makes the client do, and the rules that come into reach by it. */
export interface Act {
  text: string;
  rules: readonly RuleInfo[];
  calls: readonly ToolCall[];
  /** A command that starts the server as the act needs it, where that is not how it usually runs. */
  command: string | null;
}

export interface ToolCall {
  tool: Tool;
  arguments: Readonly<Record<string, unknown>>;
}

export const AS_USUAL = "Use the client as usual";

export interface Ahead {
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
