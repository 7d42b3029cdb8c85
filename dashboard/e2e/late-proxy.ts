import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

/** A gateway before a server; `url` is its origin, and whoever starts it stops it. */
export interface Gateway {
  url: string;
  stop: () => void;
}

/**
 * Starts a gateway with two faults of real ones: each piece of a response is late, and a client that goes away is not
 * told of, so that its call runs to the end.
 */
export async function startLateProxy(upstream: string, lateMs: number): Promise<Gateway> {
  const { hostname, port } = new URL(upstream);
  const server = createServer((from, to) => {
    const { method, url, headers } = from;
    const onward = request({ host: hostname, port, method, path: url, headers }, (answer) => {
      setTimeout(() => to.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders(), lateMs);
      answer.on("data", (piece: Buffer) => setTimeout(() => to.write(piece), lateMs));
      answer.on("end", () => setTimeout(() => to.end(), lateMs));
      answer.on("error", () => to.destroy());
    });
    onward.on("error", () => to.destroy());
    from.pipe(onward);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}
