import { useCallback, useEffect, useRef, useState } from "react";
import { BESIDE_LIVE } from "~/protocol/address";
import { ApiError, get } from "~/protocol/client";
import { leaveFor, openFile } from "~/protocol/open-file";
import type { Server } from "~/protocol/schema";
import { Button } from "~/ui/button";
import { CopyButton } from "~/ui/copy-button";
import { shellWord } from "~/words/curl";
import styles from "./file-notice.module.css";

const SUFFIXES = [".mcpprobe", ".ndjson"];

type Said = { reading: string } | { problem: string } | { command: string };

interface FileOpener {
  open: (file: File) => void;
  said: Said | null;
  close: () => void;
}

/**
 * Opens a session file: one that is given to `open`, or dropped on the page, where the browser would leave the page for it.
 *
 * The server reads it. One that others reach takes no files; then the page says how to open it, and sends nothing. `go` shows
 * another page.
 */
export function useFileOpener(go: (address: string) => void = leaveFor): FileOpener {
  const [said, setSaid] = useState<Said | null>(null);
  // of two files that are dropped the last one is shown
  const newest = useRef<File>(null);
  const send = useCallback(
    async (file: File) => {
      newest.current = file;
      const { name } = file;
      const tell = (what: Said | null) => {
        if (newest.current === file) setSaid(what);
      };
      if (!SUFFIXES.some((suffix) => name.endsWith(suffix))) {
        tell({ problem: `${name} is no session file: those end with ${SUFFIXES.join(" or ")}.` });
        return;
      }
      tell({ reading: name });
      try {
        if (!BESIDE_LIVE && !(await get<Server>("/server")).takes_files) {
          tell({ command: `mcp-probe open --open ${quoted(name)}` });
          return;
        }
        const address = await openFile(file);
        tell(null);
        if (newest.current === file) go(address);
      } catch (error) {
        tell({ problem: error instanceof ApiError ? error.message : `${name} could not be sent to the server.` });
      }
    },
    [go],
  );
  const open = useCallback((file: File) => void send(file), [send]);
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const dropped = (event: DragEvent) => {
      const file = event.dataTransfer?.files[0];
      if (file === undefined) return;
      event.preventDefault();
      open(file);
    };
    addEventListener("dragover", over);
    addEventListener("drop", dropped);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", dropped);
    };
  }, [open]);
  return { open, said, close: useCallback(() => setSaid(null), []) };
}

/** What comes of a file that was opened, as long as that is to be read. */
export function FileMessage({ said, close }: Pick<FileOpener, "said" | "close">) {
  if (said === null) return null;
  return (
    <section className={styles["file"]} aria-label="Dropped file">
      <MessageText said={said} />{" "}
      <Button small look="quiet" onClick={close}>
        Close
      </Button>
    </section>
  );
}

function MessageText({ said }: { said: Said }) {
  if ("reading" in said) return <span role="status">The server reads {said.reading} …</span>;
  if ("problem" in said) return <span role="alert">{said.problem}</span>;
  return (
    <>
      <span role="status">
        This server takes no files, as others may reach it. <code>{said.command}</code> shows the file, in a dashboard of its own.
      </span>{" "}
      <CopyButton text={said.command} label="Copy" />
    </>
  );
}

/** A name as a shell takes it for one word. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) && !name.startsWith("-") ? name : shellWord(`./${name}`);
}
