import { useEffect, useState } from "react";
import { Button } from "~/ui/button";
import { CopyButton } from "~/ui/copy-button";
import { shellWord } from "~/ui/shell-word";
import styles from "./file-notice.module.css";

const SUFFIX = ".mcpprobe";

/**
 * Says how to open a session file that is dropped on a page, where the browser would leave the page for it.
 *
 * The page cannot show it: tables, evidence and verdicts are made by a server, and a server, which may be public, takes no files.
 */
export function DroppedFile() {
  const [name, setName] = useState<string | null>(null);
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const dropped = (event: DragEvent) => {
      const file = event.dataTransfer?.files[0];
      if (file === undefined) return;
      event.preventDefault();
      if (file.name.endsWith(SUFFIX)) setName(file.name);
    };
    addEventListener("dragover", over);
    addEventListener("drop", dropped);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", dropped);
    };
  }, []);
  if (name === null) return null;
  const command = `mcp-probe open --open ${quoted(name)}`;
  return (
    <section className={styles["file"]} aria-label="Dropped file">
      <span role="status">
        This page shows a server. <code>{command}</code> shows the file, in a dashboard of its own.
      </span>{" "}
      <CopyButton text={command} label="Copy" />{" "}
      <Button small look="quiet" onClick={() => setName(null)}>
        Close
      </Button>
    </section>
  );
}

/** A name as a shell takes it for one word. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) && !name.startsWith("-") ? name : shellWord(`./${name}`);
}
