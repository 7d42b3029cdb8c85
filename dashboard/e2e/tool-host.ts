import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export const SECRET = "a-secret-of-the-tests";

/** One process of the demo host. Whoever starts it ends it. */
export interface ToolHost {
  /** Ends it; by default as a machine does that loses its power. */
  kill: (signal?: NodeJS.Signals) => Promise<void>;
}

/** Starts `mcp-probe toolhost-demo` for the server of this origin. It connects when it can, and comes back by itself. */
export function startDemoHost(origin: string, name = "demo"): ToolHost {
  const python = process.env["PROBE_PYTHON"] ?? "python";
  const child = spawn(python, ["-m", "probe", "toolhost-demo", "--url", `${origin.replace(/^http/, "ws")}/toolhost`, "--name", name], {
    env: { ...process.env, MCP_PROBE_TOOLHOST_SECRET: SECRET },
    stdio: "ignore",
  });
  return { kill: (signal = "SIGKILL") => kill(child, signal) };
}

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}
