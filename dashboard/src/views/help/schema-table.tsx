import { brief } from "~/protocol/json";
import type { Tool } from "~/protocol/schema";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { type Argument, argumentsOf, requiredOf } from "./example";

interface Line {
  name: string;
  argument: Argument;
  required: boolean;
}

const COLUMNS: readonly PlainColumn<Line>[] = [
  { key: "name", head: "Argument", width: "fit", cell: ({ name }) => <code>{name}</code> },
  { key: "type", head: "Type", width: "fit", cell: ({ argument }) => (argument.type === undefined ? "any" : String(argument.type)) },
  { key: "values", head: "Values", cell: ({ argument }) => values(argument) },
  { key: "default", head: "Default", width: "fit", cell: ({ argument, required }) => <Default argument={argument} required={required} /> },
  { key: "meaning", head: "Meaning", cell: ({ argument }) => meaning(argument) },
];

/** What may be given, as one reads it. */
function values({ enum: choices, minimum, maximum, maxLength }: Argument): string {
  if (choices !== undefined) return choices.map((choice) => brief(choice)).join(", ");
  if (maxLength !== undefined) return `up to ${maxLength} characters`;
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `at least ${minimum}`;
  return maximum === undefined ? "any" : `at most ${maximum}`;
}

function meaning(argument: Argument): string {
  const header = argument["x-mcp-header"];
  return `${argument.description ?? ""}${header === undefined ? "" : ` (mirrored in the header Mcp-Param-${header})`}`;
}

function Default({ argument, required }: { argument: Argument; required: boolean }) {
  if (required) return "required";
  return argument.default === undefined ? "none" : <code>{brief(argument.default)}</code>;
}

/** The input schema of a tool as a table. */
export function SchemaTable({ tool }: { tool: Tool }) {
  const required = requiredOf(tool);
  const lines = argumentsOf(tool).map(([name, argument]) => ({ name, argument, required: required.includes(name) }));
  if (lines.length === 0) return <p>It takes no arguments.</p>;
  return <PlainTable caption={`Arguments of ${tool.name}`} hidden columns={COLUMNS} rows={lines} rowKey={({ name }) => name} />;
}
