import { Wrench } from "lucide";
import { DASHBOARD } from "~/protocol/address";
import type { Tool } from "~/protocol/schema";
import { ActionLink } from "~/ui/action";
import { Badge } from "~/ui/badge";
import { CodeBlock } from "~/ui/code-block";
import { CopyButton } from "~/ui/copy-button";
import { KeyValues } from "~/ui/key-values";
import { JsonView } from "~/widgets/json-view";
import { curlExample, messageExample, servedIn } from "./example";
import styles from "./help.module.css";
import { SchemaTable } from "./schema-table";

interface ToolDocsProps {
  tool: Tool;
  /** The MCP address of this server, null where it speaks on standard input and output. */
  address: string | null;
  /** Served where the client's URL does not choose. */
  isDefault: boolean;
}

const TASKS: Readonly<Record<string, string>> = {
  forbidden: "never as a task",
  optional: "with or without a task",
  required: "only as a task",
};

const NEWEST_LEGACY = "2025-11-25";

/** The documentation of one tool. Its name is the anchor: `/dashboard/server/help#progress`. */
export function ToolDocs({ tool, address, isDefault }: ToolDocsProps) {
  return (
    <article className={styles["tool"]} aria-labelledby={tool.name}>
      <header className={styles["toolHead"]}>
        <h3 id={tool.name} tabIndex={-1}>
          <code>{tool.name}</code>
        </h3>
        <Badge>{tool.toolset}</Badge>
        {tool.task_support !== "forbidden" && <Badge tone="violet">task {tool.task_support}</Badge>}
        {tool.requires.map((name) => (
          <Badge key={name} tone="info">
            needs {name}
          </Badge>
        ))}
        <span className={styles["links"]}>
          <ActionLink icon={Wrench} to={`/calls?tool=${tool.name}`}>Calls</ActionLink>
          <CopyButton label="Copy link" text={() => `${location.origin}${DASHBOARD}/server/help#${tool.name}`} />
        </span>
      </header>
      <p>{tool.description}</p>
      <KeyValues
        items={[
          ["Exercises", <Prose key="exercises" text={tool.exercises} />],
          ["A good client shows", <Prose key="shows" text={tool.shows} />],
          ["Runs", TASKS[tool.task_support] ?? tool.task_support],
          ["Revisions", tool.since === tool.until ? tool.since : `${tool.since} to ${tool.until}`],
          ["Served", isDefault ? "by default" : servedAt(tool, address)],
        ]}
      />
      <SchemaTable tool={tool} />
      <Examples tool={tool} address={address} isDefault={isDefault} />
    </article>
  );
}

function servedAt({ toolset }: Tool, address: string | null): string {
  return address === null ? `when started with --tools ${toolset}` : `at ${address}?tools=${toolset}`;
}

function Examples({ tool, address, isDefault }: ToolDocsProps) {
  return (
    <>
      {address !== null && servedIn(tool, "2026-07-28") && (
        <details>
          <summary>Example call with curl, 2026-07-28</summary>
          <CodeBlock title={`${tool.name}, 2026-07-28`} code={curlExample(tool, address, isDefault)} />
        </details>
      )}
      {servedIn(tool, NEWEST_LEGACY) && (
        <details>
          <summary>Example message in a session, {NEWEST_LEGACY}</summary>
          <CodeBlock title={`${tool.name}, ${NEWEST_LEGACY}`} code={messageExample(tool)} />
        </details>
      )}
      <details>
        <summary>Schemas and annotations</summary>
        <JsonView
          title={`Definition of ${tool.name}`}
          value={{ inputSchema: tool.input_schema, outputSchema: tool.output_schema, annotations: tool.annotations }}
        />
      </details>
    </>
  );
}

/** A sentence in which code stands between backticks. */
function Prose({ text }: { text: string }) {
  // every second part was between two of them
  return text.split("`").map((part, index) => {
    // the parts of a constant text never move
    // oxlint-disable-next-line react/no-array-index-key
    return index % 2 === 0 ? part : <code key={index}>{part}</code>;
  });
}
