import type { Browser, BrowserContextOptions, Page } from "playwright";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { launch, openPage } from "./browser.ts";
import { freePort, type Server, startServer } from "./server.ts";

/** The server and the browser of the tests of one file, once its `beforeAll` hooks have run. */
export interface Visiting {
  server: Server;
  browser: Browser;
  /** Opens a path below `/dashboard`. Behind each test it is checked that none of the pages has complained. */
  open: (path: string, options?: BrowserContextOptions) => Promise<Page>;
}

function started<T>(one: T | undefined): T {
  if (one === undefined) throw new Error("it is there when the beforeAll hooks have run");
  return one;
}

/** Starts a server with these flags and a browser before the tests of a file, and ends both behind them. */
export function visiting(...flags: string[]): Visiting {
  const complaints: string[][] = [];
  const own: { server?: Server; browser?: Browser } = {};
  const visited: Visiting = {
    get server() {
      return started(own.server);
    },
    get browser() {
      return started(own.browser);
    },
    async open(path, options) {
      const opened = await openPage(visited.browser, `${visited.server.url}/dashboard${path}`, options);
      complaints.push(opened.complaints);
      return opened.page;
    },
  };

  beforeAll(async () => {
    own.server = await startServer(await freePort(), ...flags);
    own.browser = await launch();
  });

  afterEach(() => {
    // oxlint-disable-next-line vitest/no-standalone-expect -- of each test: no page may complain
    expect(complaints.flat()).toEqual([]);
  });

  afterAll(async () => {
    await own.browser?.close();
    await own.server?.stop();
  });

  return visited;
}
