import { type DragEvent, type ReactNode, useState, useSyncExternalStore } from "react";
import { Button } from "~/ui/button";
import { FileButton } from "~/ui/file-button";
import { Page } from "~/ui/page";
import { useUrlState } from "~/ui/url-state";
import { Findings } from "./findings";
import styles from "./gateway.module.css";
import { NoRun } from "./no-run";
import { type OpenedRun, readRun, UnreadableRun } from "./read-run";
import { SideBySide } from "./side-by-side";

// for as long as the page lives: the way back from another view shows it again, and nothing is stored
let current: OpenedRun | null = null;
const listeners = new Set<() => void>();

function set(run: OpenedRun | null): void {
  current = run;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The run that is open, and how to open another one or none. */
function useOpened(): [OpenedRun | null, (run: OpenedRun | null) => void] {
  return [useSyncExternalStore(subscribe, () => current), set];
}

/** What a gateway does to the protocol: a run of `mcp-probe gateway`, from a file that is dropped or chosen. */
export default function GatewayView() {
  const [opened, setOpened] = useOpened();
  const [problem, setProblem] = useState("");
  const [step, setStep] = useUrlState("step");
  const open = async (file: File) => {
    try {
      setOpened(await readRun(file));
      setProblem("");
      setStep("");
    } catch (error) {
      setProblem(error instanceof UnreadableRun ? error.message : `${file.name} cannot be read: ${String(error)}.`);
    }
  };
  return (
    <DropTarget onFile={(file) => void open(file)}>
      <Page title="Gateway" scroll tools={<Tools opened={opened} onFile={(file) => void open(file)} onClose={() => setOpened(null)} />}>
        <p role="alert" className={styles["problem"]}>
          {problem}
        </p>
        {opened === null ? <NoRun /> : <Run opened={opened} step={step} />}
      </Page>
    </DropTarget>
  );
}

function Tools({ opened, onFile, onClose }: { opened: OpenedRun | null; onFile: (file: File) => void; onClose: () => void }) {
  return (
    <>
      <FileButton label={opened === null ? "Open a run" : "Open another run"} accept=".json,application/json" onFile={onFile} />
      {opened !== null && (
        <>
          <Button look="quiet" onClick={onClose}>
            Close it
          </Button>
          <code className={styles["quiet"]}>{opened.name}</code>
        </>
      )}
    </>
  );
}

function Run({ opened: { report }, step }: { opened: OpenedRun; step: string }) {
  const [turn] = useUrlState("turn", "1");
  return step === "" ? <Findings report={report} /> : <SideBySide report={report} step={step} turn={Number(turn)} />;
}

/** A part of the page on which a file can be dropped. The same can be done with a button inside, for those who do not drag. */
function DropTarget({ onFile, children }: { onFile: (file: File) => void; children: ReactNode }) {
  const [over, setOver] = useState(false);
  const drag = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    setOver(event.type === "dragover");
    const file = event.type === "drop" ? event.dataTransfer.files[0] : undefined;
    if (file !== undefined) onFile(file);
  };
  return (
    <div role="presentation" className={`${styles["target"]} ${over ? styles["over"] : ""}`} onDragOver={drag} onDragLeave={drag} onDrop={drag}>
      {children}
    </div>
  );
}
