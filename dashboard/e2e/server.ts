import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/** One server process. `url` is its origin; whoever starts it stops it. */
export interface Server {
  url: string;
  stop: (signal?: NodeJS.Signals) => Promise<void>;
}

/** A port that nobody uses at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return address.port;
}

/** Starts a server with the built pages; `PROBE_PYTHON` is the interpreter that has the package. */
export function startServer(port: number, ...flags: string[]): Promise<Server> {
  return started(port, "listens on", "serve", "--port", String(port), "--tools", "all", ...flags);
}

/** Shows a session file with the built pages. */
export function showFile(port: number, file: string): Promise<Server> {
  return started(port, "Dashboard:", "open", file, "--port", String(port));
}

async function started(port: number, sign: string, ...command: string[]): Promise<Server> {
  const child = spawn(process.env["PROBE_PYTHON"] ?? "python", ["-m", "probe", ...command], { stdio: ["ignore", "ignore", "pipe"] });
  const said: string[] = [];
  const ready = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      said.push(line);
      if (line.includes(sign)) resolve();
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said.join("\n")}`)));
  });
  await ready;
  return { url: `http://127.0.0.1:${port}`, stop: (signal = "SIGTERM") => stop(child, signal) };
}

/** Runs `mcp-probe gateway` with a probe and a gateway before it, and writes what it finds into a file. */
export async function checkGateway(probe: string, through: string, file: string, ...only: string[]): Promise<void> {
  const options = ["--probe", probe, "--through", `${through}/mcp`, "--format", "json", "--out", file, ...only.flatMap((name) => ["--only", name])];
  const child = spawn(process.env["PROBE_PYTHON"] ?? "python", ["-m", "probe", "gateway", ...options], { stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number];
  // 1: something is broken, which is what it is for
  if (code > 1) throw new Error(`mcp-probe gateway ended with ${code}`);
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}
