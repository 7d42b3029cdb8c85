import { useState } from "react";
import { scalarText, writeJson } from "~/protocol/json";
import { Button } from "~/ui/buttons";
import { Block } from "~/ui/panel";
import { counted } from "~/words/text";
import styles from "./json-view.module.css";

// What one step shows: enough to read, few enough elements to stay quick with a value of megabytes.
const MEMBERS = 100;
const CHARACTERS = 2000;

interface JsonViewProps {
  value: unknown;
  /** Names it, for everybody. */
  title: string;
  /** How many levels are open at first. */
  open?: number;
  /** What is copied, where the text as it came on the wire is known. */
  text?: string | undefined;
}

/** A JSON value as a tree that opens step by step. */
export function JsonView({ value, title, open = 2, text }: JsonViewProps) {
  // opening or closing everything builds the tree anew, with another number of open levels
  const [levels, setLevels] = useState(open);
  const all = levels === Number.POSITIVE_INFINITY;
  return (
    <Block
      title={title}
      text={text ?? (() => writeJson(value, 2))}
      actions={
        <Button look="quiet" small onClick={() => setLevels(all ? 1 : Number.POSITIVE_INFINITY)}>
          {all ? "Collapse" : "Expand"}
        </Button>
      }
    >
      {/* what scrolls must be reachable by keyboard */}
      <div className={styles["tree"]} role="group" tabIndex={0} aria-label={title}>
        <Node key={levels} value={value} levels={levels} />
      </div>
    </Block>
  );
}

interface NodeProps {
  name?: string;
  value: unknown;
  levels: number;
}

function Node({ name, value, levels }: NodeProps) {
  const label = name === undefined ? null : <span className={styles["key"]}>{JSON.stringify(name)}: </span>;
  if (typeof value === "object" && value !== null) return <Branch label={label} value={value} levels={levels} />;
  return (
    <div className={styles["leaf"]}>
      {label}
      <Leaf value={value} />
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  if (typeof value === "number" || typeof value === "bigint") return <span className={styles["number"]}>{scalarText(value)}</span>;
  if (typeof value !== "string") return <span className={styles["word"]}>{String(value)}</span>;
  if (whole || value.length <= CHARACTERS) return <span className={styles["string"]}>{JSON.stringify(value)}</span>;
  return (
    <>
      <span className={styles["string"]}>{JSON.stringify(value.slice(0, CHARACTERS))}</span>{" "}
      <Button small onClick={() => setWhole(true)}>
        … all {value.length} characters
      </Button>
    </>
  );
}

interface BranchProps {
  label: React.ReactNode;
  value: object;
  levels: number;
}

function Branch({ label, value, levels }: BranchProps) {
  const isArray = Array.isArray(value);
  const keys = isArray ? null : Object.keys(value);
  const size = keys === null ? (value as unknown[]).length : keys.length;
  const [open, setOpen] = useState(levels > 0);
  const [shown, setShown] = useState(MEMBERS);
  const count = Math.min(size, shown);
  const brackets = isArray ? "[]" : "{}";
  if (size === 0) {
    return (
      <div>
        {label}
        {brackets}
      </div>
    );
  }
  return (
    <div>
      <button type="button" className={`${styles["toggle"]} fold`} aria-expanded={open} onClick={() => setOpen(!open)}>
        {label}
        {brackets[0]}
        {!open && (
          <span className="quiet">
            … {counted(size, "member")} {brackets[1]}
          </span>
        )}
      </button>
      {open && (
        <div className={styles["children"]}>
          {Array.from({ length: count }, (_, index) => {
            const key = keys?.[index];
            const member: unknown = key === undefined ? (value as unknown[])[index] : (value as Record<string, unknown>)[key];
            return <Node key={key ?? index} {...(key !== undefined && { name: key })} value={member} levels={levels - 1} />;
          })}
          {count < size && (
            <Button small onClick={() => setShown(shown + MEMBERS)}>
              {size - count} more
            </Button>
          )}
        </div>
      )}
      {open && <div>{brackets[1]}</div>}
    </div>
  );
}
