import { afterEach, expect, test } from "vitest";
import { cleanup } from "vitest-browser-react";
import { page } from "vitest/browser";
import type { GatewayReport } from "~/protocol/schema";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { gatewayFinding, gatewayReport } from "~/testing/reports";
import { openView } from "~/testing/view";
import GatewayView from "./gateway-view";

const LATE = gatewayFinding("stream.late", { verdict: "degraded", title: "each message is late", hints: [{ product: null, lines: ["send at once"] }, { product: "HAProxy", lines: ["option http-no-delay"] }] });

const fileOf = (content: unknown, name = "run.json") => new File([typeof content === "string" ? content : JSON.stringify(content)], name, { type: "application/json" });

function drop(file: File): void {
  const target = document.querySelector("main [role=presentation]");
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(file);
  target?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}

async function opened(path = "/gateway") {
  return openView(GatewayView, "/gateway", path);
}

const withRun = async (report: GatewayReport) => {
  const view = await opened();
  drop(fileOf(report));
  await expect.element(page.getByText("run.json")).toBeVisible();
  return view;
};

afterEach(async () => {
  // the run outlives the view, as it does when somebody looks at another one
  const close = page.getByRole("button", { name: "Close it" });
  if (close.query() !== null) await close.click();
  await cleanup();
});

test("without a run the page says how to make one, and is accessible in light and dark", async () => {
  await opened();
  await expect.element(page.getByText(/mcp-probe gateway --listen \d+ --through http:..127.0.0.1:8080.mcp/)).toBeVisible();
  await inBothThemes(() => expectAccessible());
});

test("a run that is chosen begins with its conclusion; the worst is unfolded, what is the same is not", async () => {
  await opened();
  const report = gatewayReport([gatewayFinding("stream.held"), LATE, gatewayFinding("close.lost", { verdict: "broken", evidence: "lost: silent" })], { partial: "stopped by a signal: 9 of 40 steps were done" });
  await page.getByLabelText("Open a result file").upload(fileOf(report));
  await expect.element(page.getByText(/stopped by a signal: 9 of 40 steps were done/)).toBeVisible();
  await expect.element(page.getByText("HAProxy breaks 1 part of the protocol and limits 1.")).toBeVisible();
  await expect.element(page.getByText("lost: silent")).toBeVisible();
  await expect.element(page.getByText("option http-no-delay")).not.toBeVisible();
  await page.getByText("each message is late").click();
  await expect.element(page.getByText("option http-no-delay")).toBeVisible();
  await expect.element(page.getByText("stream.held", { exact: true })).not.toBeVisible();
  await inBothThemes(() => expectAccessible());
});

test("evidence leads to both requests side by side, and back", async () => {
  await withRun(gatewayReport([LATE]));
  await page.getByRole("link", { name: "progress.legacy" }).click();
  await expect.element(page.getByRole("heading", { name: "Through the gateway" }).first()).toBeVisible();
  expect(location.search).toBe("?step=progress.legacy&turn=1");
  await expect.element(page.getByRole("img", { name: "arrived at the client: 2, from 200 ms to 400 ms" })).toBeVisible();
  await expect.element(page.getByRole("img", { name: "arrived at the client: 2, from 0 ms to 200 ms" })).toBeVisible();
  await inBothThemes(() => expectAccessible());
  await page.getByRole("link", { name: "All checks" }).click();
  await expect.element(page.getByText("each message is late")).toBeVisible();
});

test("entries and calls lead into the log where this server has the run, and are numbers where it has not", async () => {
  const { show } = await withRun(gatewayReport([LATE]));
  await page.getByRole("link", { name: "progress.legacy" }).click();
  await expect.element(page.getByText("The log of this run is not on this server, so its entries are numbers and no links.").first()).toBeVisible();
  expect(page.getByRole("link", { name: "#34" }).query()).toBeNull();
  show({}, "abc");
  await expect.element(page.getByRole("link", { name: "#34" })).toHaveAttribute("href", "/dashboard/trace?at=abc-34");
  await expect.element(page.getByRole("link", { name: "c1" }).first()).toHaveAttribute("href", "/dashboard/calls/abc.c1");
});

test("a file that is no run is refused in one line, and the run before it stays", async () => {
  await withRun(gatewayReport([LATE]));
  drop(fileOf("PK", "shot.png"));
  await expect.element(page.getByRole("alert").getByText(/^shot.png is no JSON/)).toBeVisible();
  await expect.element(page.getByText("each message is late")).toBeVisible();
  drop(fileOf(gatewayReport([LATE]), "again.json"));
  await expect.element(page.getByText("again.json")).toBeVisible();
  await expect.element(page.getByRole("alert")).not.toBeInTheDocument();
});

test("what a gateway calls itself is text", async () => {
  await withRun(gatewayReport([LATE], { product: "<img src=x onerror=alert(1)>" }));
  await expect.element(page.getByText("<img src=x onerror=alert(1)> breaks nothing, and limits 1 part of the protocol.")).toBeVisible();
});

test("a step that the run does not have is said so", async () => {
  await withRun(gatewayReport([LATE]));
  await cleanup();
  await opened("/gateway?step=nope&turn=3");
  await expect.element(page.getByText("The run has no turn 3 of the step nope")).toBeVisible();
});
