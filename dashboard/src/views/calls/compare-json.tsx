import { isCut, oneLine } from "./calls";
import { CompareTable } from "./compare-table";
import { jsonDiff } from "./json-diff";

/** Two JSON values, member by member. */
export function CompareJson({ label, a, b, only }: { label: string; a: unknown; b: unknown; only: boolean }) {
  const lines = jsonDiff(a, b).map((each) => ({
    name: each.path === "" ? "(the whole)" : each.path,
    a: <Value value={each.a} />,
    b: <Value value={each.b} />,
    mark: each.mark,
  }));
  return (
    <>
      {(isCut(a) || isCut(b)) && <p>Of a value that was cut only its beginning is compared.</p>}
      <CompareTable label={label} head="Member" lines={lines} only={only} />
    </>
  );
}

function Value({ value }: { value: unknown }) {
  return value === undefined ? "absent" : <code>{oneLine(value)}</code>;
}
