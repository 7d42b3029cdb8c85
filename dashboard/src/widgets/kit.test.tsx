import { useState } from "react";
import { expect, test } from "vitest";
import { render } from "vitest-browser-react";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { Badge } from "~/ui/badge";
import { Button } from "~/ui/buttons";
import { Drawer } from "~/ui/drawer";
import { SearchField, Segmented, Select } from "~/ui/fields";
import { CodeBlock, EmptyState, KeyValues } from "~/ui/panel";
import { PlainTable } from "~/ui/plain-table";
import { Duration, Time } from "~/ui/time";
import { ConnectionPill, DirectionBadge, EraBadge, ProgressBar, StatusBadge } from "./badges";
import { JsonView } from "./json-view";

const OPTIONS = [
  { value: "a", label: "Alpha" },
  { value: "b", label: "Beta" },
];
const STATES = ["running", "completed", "tool_error", "cancelled", "input_required", "queued", "live", "stale"];

test("everything together is accessible in light and dark", async () => {
  await render(
    <main>
      <h1>Kit</h1>
      {STATES.map((status) => (
        <StatusBadge key={status} status={status} />
      ))}
      <Badge>x</Badge>
      <EraBadge era="modern" />
      <EraBadge era="legacy" revision="2025-11-25" />
      <DirectionBadge direction="in" />
      <DirectionBadge direction="out" />
      <Button>Plain</Button>
      <Button look="primary">Primary</Button>
      <Button look="quiet">Quiet</Button>
      <Button aria-pressed>Down</Button>
      <Segmented label="Segments" options={OPTIONS} value="a" onChange={() => undefined} />
      <Select label="Select" options={OPTIONS} value="c" onChange={() => undefined} />
      <SearchField label="Search" value="" onChange={() => undefined} />
      <CodeBlock title="shell" code="curl -N http://127.0.0.1:8000/mcp" />
      <ConnectionPill status="stale" saved={null} />
      <JsonView title="Message" value={{ a: [1, "x", null, true, { b: {} }] }} />
      <KeyValues items={[["Name", "value"], ["Nothing", null]]} />
      <PlainTable caption="Limits" columns={[{ key: "a", head: "A", cell: String }]} rows={[1, 2]} rowKey={String} />
      <ProgressBar label="one" done={2} total={5} />
      <ProgressBar label="two" done={null} total={null} />
      <Time at={0} look="both" />
      <Duration ms={12.34} />
      <EmptyState title="Nothing">yet</EmptyState>
      <Drawer title="Call c1" of="c1" onClose={() => undefined}>
        text
      </Drawer>
    </main>,
  );
  await inBothThemes(() => expectAccessible());
});

function Opener() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Open</Button>
      {open && (
        <Drawer title="Call c1" of="c1" onClose={() => setOpen(false)}>
          <Button>Inside</Button>
        </Drawer>
      )}
    </>
  );
}

test("a drawer takes the focus, closes with Escape, and gives the focus back", async () => {
  await render(<Opener />);
  const opener = page.getByRole("button", { name: "Open" });
  await opener.click();
  const drawer = page.getByRole("complementary", { name: "Call c1" });
  await expect.element(drawer).toHaveFocus();
  await page.getByRole("button", { name: "Inside" }).click();
  await userEvent.keyboard("{Escape}");
  await expect.element(drawer).not.toBeInTheDocument();
  await expect.element(opener).toHaveFocus();
});

test("progress says how far in words and to a screen reader", async () => {
  await render(<ProgressBar label="progress of c1" done={2} total={5} />);
  const bar = page.getByRole("progressbar", { name: "progress of c1" });
  await expect.element(bar).toHaveAttribute("aria-valuenow", "40");
  await expect.element(page.getByText("2/5")).toBeVisible();
});

test("progress without a total has no value, and moves only while it runs", async () => {
  const { container, rerender } = await render(<ProgressBar label="p" done={3} total={null} />);
  await expect.element(page.getByRole("progressbar")).not.toHaveAttribute("aria-valuenow");
  expect(container.querySelector("[role=progressbar] > *")).not.toBeNull();
  await rerender(<ProgressBar label="p" done={3} total={null} status="cancelled" />);
  expect(container.querySelector("[role=progressbar] > *")).toBeNull();
});

test("a JSON tree opens step by step and shows a hundred members at a time", async () => {
  await render(<JsonView title="Big" open={0} value={Array.from({ length: 250 }, (_, index) => `v${index}`)} />);
  const tree = page.getByRole("group", { name: "Big" });
  await expect.element(tree).toMatchTextContent("250 members");
  await tree.getByRole("button").click();
  await expect.element(tree.getByText('"v99"')).toBeInTheDocument();
  await expect.element(tree.getByText('"v100"')).not.toBeInTheDocument();
  await tree.getByRole("button", { name: "150 more" }).click();
  await expect.element(tree.getByText('"v199"')).toBeInTheDocument();
});

test("a long string is cut until it is asked for", async () => {
  await render(<JsonView title="Long" value={{ text: "x".repeat(5000) }} />);
  const tree = page.getByRole("group", { name: "Long" });
  expect(tree.element().textContent?.length).toBeLessThan(2100);
  await tree.getByRole("button", { name: /all 5000 characters/ }).click();
  await expect.poll(() => tree.element().textContent?.length).toBeGreaterThan(5000);
});

test("a search says what was typed once typing rests, and Escape clears at once", async () => {
  const said: string[] = [];
  function Search() {
    const [value, setValue] = useState("");
    return (
      <SearchField
        label="Search"
        value={value}
        onChange={(text) => {
          said.push(text);
          setValue(text);
        }}
      />
    );
  }
  await render(<Search />);
  await page.getByRole("searchbox").click();
  await userEvent.keyboard("abc");
  await expect.poll(() => said.at(-1)).toBe("abc");
  expect(said.length).toBeLessThan(3);
  await userEvent.keyboard("{Escape}");
  await expect.poll(() => said.at(-1)).toBe("");
});

test("what is typed before the value of a search has changed stays, and a value from outside replaces it", async () => {
  const said: string[] = [];
  const search = (value: string) => <SearchField label="Search" value={value} onChange={(text) => said.push(text)} />;
  const shown = await render(search(""));
  const field = page.getByRole("searchbox");
  await field.click();
  await userEvent.keyboard("abc");
  await expect.poll(() => said.at(-1)).toBe("abc");
  await userEvent.keyboard("d");
  await shown.rerender(search("abc"));
  await expect.element(field).toHaveValue("abcd");
  await expect.poll(() => said.at(-1)).toBe("abcd");
  await shown.rerender(search("other"));
  await expect.element(field).toHaveValue("other");
});
