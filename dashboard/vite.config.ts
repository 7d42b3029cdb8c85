import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";
import { CHROMIUM_ARGS } from "./e2e/chromium.ts";

// Where `npm run dev` finds a server to show; the built pages only ever speak to their own origin.
const server = process.env["PROBE_URL"] ?? "http://127.0.0.1:8000";

const chromium = {
  ...(process.env["PROBE_CHROMIUM"] && { executablePath: process.env["PROBE_CHROMIUM"] }),
  args: CHROMIUM_ARGS,
};

export default defineConfig(({ command }) => ({
  // relative in the built pages, which may be mounted below any path: the server completes index.html for each view
  base: command === "build" ? "./" : "/dashboard/",
  plugins: [react()],
  resolve: { alias: { "~": fileURLToPath(new URL("src", import.meta.url)) } },
  build: {
    outDir: "../src/probe/web/site",
    emptyOutDir: true,
    // the first versions with light-dark(), which the colours are written with
    target: ["chrome123", "firefox120", "safari17.5"],
    // the Content-Security-Policy has no data: but for images
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: {
    host: "127.0.0.1",
    // a test answers for the server itself, and must not find a real one by chance
    ...(!process.env["VITEST"] && { proxy: { "/api": server, "/dashboard/events": server, "/opened": server } }),
  },
  test: {
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: { name: "plain", environment: "node", include: ["src/**/*.test.ts"] },
      },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["src/**/*.test.tsx"],
          setupFiles: ["src/testing/setup.ts"],
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            viewport: { width: 1280, height: 800 },
            provider: playwright({ launchOptions: chromium }),
            instances: [{ browser: "chromium" }],
          },
        },
      },
      {
        // a real server, which serves the built pages: `nox -s dashboard_tests` makes both before
        extends: true,
        test: { name: "end-to-end", environment: "node", include: ["e2e/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 60_000 },
      },
    ],
  },
}));
