import { KeyValues } from "~/ui/key-values";
import { JsonView } from "~/widgets/json-view";
import { counted } from "~/words/counted";
import { type Declared, declaredLines, differs } from "./declared";
import { capabilityLines } from "./features";
import styles from "./sessions.module.css";

interface CapabilitiesProps {
  /** Those of `initialize`, or of the newest request. */
  capabilities: unknown;
  era: "legacy" | "modern";
  /** Of a modern client, where it is known. */
  declared: Declared | null;
}

/** What the client says that it can do: once for a session, else request by request. */
export function Capabilities({ capabilities, era, declared }: CapabilitiesProps) {
  return (
    <section className={styles["part"]} aria-label="Declared capabilities">
      {era === "modern" && declared !== null && declared.requests > 0 ? <OfRequests declared={declared} /> : <Once capabilities={capabilities} era={era} />}
    </section>
  );
}

function Once({ capabilities, era }: Pick<CapabilitiesProps, "capabilities" | "era">) {
  const lines = capabilityLines(capabilities);
  const none = era === "legacy" ? "None was declared in initialize: the server may ask this client nothing." : "The newest request declared none.";
  return (
    <>
      {lines.length === 0 ? <p>{none}</p> : <KeyValues items={lines.map(([name, inside]) => [name, inside === "" ? "declared" : inside])} />}
      <JsonView title="Capabilities as declared" value={capabilities} open={0} />
    </>
  );
}

function OfRequests({ declared }: { declared: Declared }) {
  const { requests, union, complete } = declared;
  const lines = declaredLines(declared);
  const which = `${complete ? "" : "newest "}${counted(requests, "request")}`;
  return (
    <>
      {lines.length === 0 ? <p>None of its {which} declared any: the server may ask this client nothing.</p> : <KeyValues items={lines} />}
      {differs(declared) && <p>Its {which} differ: the server may ask the client only what the request at hand declares.</p>}
      <JsonView title="All that was declared" value={union} open={0} />
    </>
  );
}
