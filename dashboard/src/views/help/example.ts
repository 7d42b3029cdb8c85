import { writeJson } from "~/protocol/json";
import type { Tool } from "~/protocol/schema";

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

const MODERN = "2026-07-28";
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

function mirrored(tool: Tool, values: Json): string {
  return argumentsOf(tool)
    .filter(([name, argument]) => argument["x-mcp-header"] !== undefined && values[name] !== undefined)
    .map(([name, argument]) => `-H Mcp-Param-${argument["x-mcp-header"]}:${String(values[name])} `)
    .join("");
}

/** A call for the shell in 2026-07-28. `isDefault`: the tool is served without being asked for in the URL. */
export function curlExample(tool: Tool, address: string, isDefault: boolean): string {
  const values = exampleArguments(tool);
  const params = {
    name: tool.name,
    arguments: values,
    _meta: {
      progressToken: "t",
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientInfo": { name: "curl", version: "0" },
      "io.modelcontextprotocol/clientCapabilities": capabilities(tool),
    },
  };
  const body = writeJson({ jsonrpc: "2.0", id: 1, method: "tools/call", params }, 2);
  return [
    `curl -N '${address}${isDefault ? "" : `?tools=${tool.toolset}`}' \\`,
    "  -H Content-Type:application/json -H Accept:application/json,text/event-stream \\",
    `  -H MCP-Protocol-Version:${MODERN} -H Mcp-Method:tools/call -H Mcp-Name:${tool.name} ${mirrored(tool, values)}\\`,
    `  -d '${body.replaceAll("'", String.raw`'\''`)}'`,
  ].join("\n");
}

/** The message of a call in the sessions of the legacy era. */
export function messageExample(tool: Tool): string {
  const params = {
    name: tool.name,
    arguments: exampleArguments(tool),
    ...(tool.task_support === "required" && { task: {} }),
    _meta: { progressToken: "t" },
  };
  return writeJson({ jsonrpc: "2.0", id: 1, method: "tools/call", params }, 2);
}
