import { expect, test } from "vitest";
import { page } from "vitest/browser";
import { openView } from "~/testing/view";
import { DroppedFile } from "./dropped-file";

function drop(name: string): DragEvent {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["x"], name));
  const event = new DragEvent("drop", { dataTransfer, cancelable: true, bubbles: true });
  document.body.dispatchEvent(event);
  return event;
}

test.each([
  ["a-1.mcpprobe", "mcp-probe open --open a-1.mcpprobe"],
  ["it's $HOME.mcpprobe", String.raw`mcp-probe open --open './it'\''s $HOME.mcpprobe'`],
  ["-o.mcpprobe", "mcp-probe open --open './-o.mcpprobe'"],
])("a dropped %s does not leave the page, which says how to open it", async (name, command) => {
  await openView(DroppedFile, "/live", "/live");
  expect(drop(name).defaultPrevented).toBe(true);
  await expect.element(page.getByRole("region", { name: "Dropped file" }).getByText(command, { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Close" }).click();
  await expect.element(page.getByRole("region", { name: "Dropped file" })).not.toBeInTheDocument();
});

test("another file is none of this page's, and does not leave it either", async () => {
  await openView(DroppedFile, "/live", "/live");
  expect(drop("picture.png").defaultPrevented).toBe(true);
  await expect.element(page.getByRole("region")).not.toBeInTheDocument();
});
