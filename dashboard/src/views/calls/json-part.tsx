import { CodeBlock } from "~/ui/code-block";
import { JsonView } from "~/widgets/json-view";
import { isCut } from "./calls";

// the text that a tool answers stands on the fourth level of its result
const LEVELS = 4;

/** JSON of a row: as a tree, or the beginning of it as text where no more was kept. */
export function JsonPart({ title, value, absent }: { title: string; value: unknown; absent?: string }) {
  if (value === null && absent !== undefined) return <p>{absent}</p>;
  if (!isCut(value)) return <JsonView title={title} value={value} open={LEVELS} />;
  return (
    <>
      <p>
        Cut: only the beginning of its {value.bytes} bytes was kept.
      </p>
      <CodeBlock title={`${title}, the beginning`} code={value.cut} wrap />
    </>
  );
}
