import { type DragEvent, type ReactNode, useState } from "react";
import { ROOT, useMcpAddress, useServer } from "~/protocol/client";
import { Button, FileButton } from "~/ui/buttons";
import { TextField } from "~/ui/fields";
import { Page } from "~/ui/page";
import { CodeBlock } from "~/ui/panel";
import { useUrlState } from "~/ui/window";
import { shellWord } from "~/words/curl";
import { Findings } from "./findings";
import styles from "./gateway.module.css";
import { setOpened, useOpened } from "./opened";
import { type OpenedRun, readRun, UnreadableRun } from "./run";
import { SideBySide } from "./side-by-side";

const PORT = 8000;

/** A word of the shell, in quotes where it needs them. */
const word = (text: string) => (/^[\w:/.@%-]+$/.test(text) ? text : shellWord(text));

/** The check with a probe of its own, on a port beside that of the server at `origin`, which uses its own. */
export function withOwnProbe(origin: string, through: string): { port: number; command: string } {
  const port = Number(new URL(origin).port || PORT) + 1;
  return { port, command: `mcp-probe gateway --listen ${port} --through ${word(through)} --format json --out run.json` };
}

/** The check with the server of these pages as the probe, which the gateway leads to already. */
export function withThisProbe(probe: string, through: string): string {
  return `mcp-probe gateway --probe ${word(probe)} --through ${word(through)} --format json --out run.json`;
}

/** What stands here before a run is opened: how to make one. */
function NoRun() {
  const [through, setThrough] = useUrlState("through", "http://127.0.0.1:8080/mcp");
  const address = useMcpAddress();
  const { port, command } = withOwnProbe(location.origin, through);
  return (
    <section className={`${styles["empty"]} column`} aria-label="No result is open">
      <h2 className="answer">Does your gateway change the protocol?</h2>
      <p className="lead">
        <code>mcp-probe gateway</code> makes the same requests with and without the gateway, and says what it changes, delays or loses. Drop the file that
        it writes on this page, or open it with the button above. The file stays in your browser.
      </p>
      <TextField label="MCP address through your gateway" value={through} onChange={setThrough} wide />
      <div className="column">
        <h3>Start the check, then point the gateway at http://127.0.0.1:{port}</h3>
        <CodeBlock title="Shell" code={command} wrap />
      </div>
      {address !== null && (
        <div className="column">
          <h3>Or, where the gateway leads to this server already</h3>
          <AllTools />
          <CodeBlock title="Shell" code={withThisProbe(`${location.origin}${ROOT}`, through)} wrap />
        </div>
      )}
    </section>
  );
}

/** The check calls tools of each set, so it needs a server that serves all. */
function AllTools() {
  const { data } = useServer();
  if (data === undefined || data.toolsets.every((toolset) => toolset.default)) return null;
  return (
    <p className="quiet">
      This needs a server with all tools, which this one is not: start it again with <code>mcp-probe serve --tools all</code>.
    </p>
  );
}

/** What a gateway does to the protocol: a run of `mcp-probe gateway`, from a file that is dropped or chosen. */
export default function GatewayView() {
  const opened = useOpened();
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
      <FileButton label={opened === null ? "Open a result file" : "Open another one"} accept=".json,application/json" onFile={onFile} />
      {opened !== null && (
        <>
          <Button look="quiet" onClick={onClose}>
            Close it
          </Button>
          <code className="quiet">{opened.name}</code>
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
