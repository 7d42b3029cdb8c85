import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, BESIDE_LIVE, get, leaveFor, liveAddress, openFile, useServer } from "~/protocol/client";
import type { FileInfo, Server } from "~/protocol/schema";
import { Button, CopyButton } from "~/ui/buttons";
import { Time } from "~/ui/time";
import { shellWord } from "~/words/curl";
import styles from "./shell.module.css";

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
    <section className={`${styles["file"]} strip`} aria-label="Dropped file">
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

interface FileNoticeProps {
  /** Whether a server with a live log has opened the file, so that there is a way back to that. */
  besideLive?: boolean;
}

/** Says that the pages show a file and no server, where that is so, and what is missing in it. */
export function FileNotice({ besideLive = BESIDE_LIVE }: FileNoticeProps) {
  const { data, error } = useServer(besideLive ? ASKED_AGAIN : undefined);
  const closed = besideLive && error instanceof ApiError;
  const file = data?.file ?? null;
  if (file === null && !closed) return null;
  return (
    <section className={`${styles["file"]} strip`} aria-label="File">
      {closed || file === null ? <span role="alert">{error?.message}.</span> : <Told file={file} />}{" "}
      {besideLive && (
        <a className={styles["back"]} href={liveAddress()}>
          Back to live
        </a>
      )}
    </section>
  );
}

// the server closes a file when others were opened after it
const ASKED_AGAIN = 10_000;

function Told({ file }: { file: FileInfo }) {
  return (
    <span>
      <strong>{file.name}</strong>: a file{file.saved_at !== null && <>, saved <Time at={file.saved_at} look="both" /></>}. {partOf(file)} {missing(file)}
    </span>
  );
}

function partOf({ client, call, filtered }: FileInfo): string {
  if (call !== null) return `It has the entries of call ${call}.`;
  if (client !== null) return `It has the entries of ${client}.`;
  return filtered ? "It has a part of the log." : "It has the whole log.";
}

function missing({ cut_off, gaps }: FileInfo): string {
  const lost = gaps.reduce((sum, gap) => sum + gap.last - gap.first + 1, 0);
  const said = [cut_off ? "its end is missing" : "", lost > 0 ? `${lost.toLocaleString("en")} entries are missing` : ""].filter(Boolean).join(", and ");
  return said === "" ? "Nothing of that is missing." : `It is incomplete: ${said}.`;
}
