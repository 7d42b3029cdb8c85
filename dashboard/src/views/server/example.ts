import { writeJson } from "~/protocol/json";
import type { Tool } from "~/protocol/schema";
import { callMessage, header, modernCurl, routing } from "~/words/curl";

/** The part of a JSON schema that tells of one argument. */
export interface Argument {
  type?: string | readonly string[];
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  "x-mcp-header"?: string;
}

type Json = Readonly<Record<string, unknown>>;

const TASKS = "io.modelcontextprotocol/tasks";

/** The arguments that a tool takes, by name. */
export function argumentsOf(tool: Tool): [name: string, argument: Argument][] {
  return Object.entries((tool.input_schema["properties"] ?? {}) as Record<string, Argument>);
}

/** The names of those that must be given. */
export function requiredOf(tool: Tool): readonly string[] {
  return (tool.input_schema["required"] ?? []) as readonly string[];
}

/** Arguments that the tool accepts: its defaults, and something fitting where there must be a value. */
export function exampleArguments(tool: Tool): Json {
  const required = requiredOf(tool);
  const given = argumentsOf(tool).filter(([name, { default: value }]) => value !== undefined || required.includes(name));
  return Object.fromEntries(given.map(([name, argument]) => [name, sample(argument)]));
}

function sample({ default: value, enum: choices, type, minimum }: Argument): unknown {
  if (value !== undefined) return value;
  if (choices !== undefined) return choices[0];
  if (type === "integer" || type === "number") return minimum ?? 1;
  return type === "boolean" ? false : "example";
}

/** Whether the tool does what it is for in the given revision. */
export function servedIn(tool: Tool, revision: string): boolean {
  return tool.since <= revision && revision <= tool.until;
}

/** Capabilities as a client declares them: `elicitation.url` is an object in an object. */
function capabilities(tool: Tool): Json {
  const declared: Record<string, Record<string, unknown>> = {};
  for (const name of tool.requires) {
    const [first = name, mode] = name.split(".");
    declared[first] = { ...declared[first], ...(mode !== undefined && { [mode]: {} }) };
  }
  return { ...declared, ...(tool.task_support !== "forbidden" && { extensions: { [TASKS]: {} } }) };
}

/** The headers that mirror arguments, as the schema of the tool asks for. */
function mirrored(tool: Tool, values: Json): readonly string[] {
  return argumentsOf(tool)
    .filter(([name, argument]) => argument["x-mcp-header"] !== undefined && values[name] !== undefined)
    .map(([name, argument]) => header(`Mcp-Param-${argument["x-mcp-header"]}`, String(values[name])));
}

/** A call for the shell in 2026-07-28. `isDefault`: the tool is served without being asked for in the URL. */
export function curlExample(tool: Tool, address: string, isDefault: boolean): string {
  const values = exampleArguments(tool);
  const message = callMessage({ tool: tool.name, arguments: values, token: "t", capabilities: capabilities(tool) }, true);
  return modernCurl(`${address}${isDefault ? "" : `?tools=${tool.toolset}`}`, [...routing(tool.name), ...mirrored(tool, values)], message);
}

/** The message of a call in the sessions of the legacy era. */
export function messageExample(tool: Tool): string {
  const message = callMessage({ tool: tool.name, arguments: exampleArguments(tool), token: "t" }, false) as { params: object };
  return writeJson({ ...message, params: { ...message.params, ...(tool.task_support === "required" && { task: {} }) } }, 2);
}
