import { useState } from "react";
import { expect, test } from "vitest";
import { render } from "vitest-browser-react";
import { cdp, page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { DataTable } from "./data-table";
import type { Column } from "./grid-columns";

interface Thing {
  id: string;
}

const COLUMNS: readonly Column<Thing>[] = [
  { key: "id", head: "Id", cell: (row) => row.id, width: "10rem" },
  { key: "size", head: "Size", cell: (row) => row.id.length, width: "minmax(0, 1fr)", align: "end" },
];

const things = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => ({ id: `t${from + index}` }));

function Table({ rows, rowHeight = 32 }: { rows: readonly Thing[]; rowHeight?: number }) {
  const [selected, setSelected] = useState<string>();
  return (
    <div style={{ display: "flex", flexDirection: "column", height: 400 }}>
      <DataTable
        label="Things"
        columns={COLUMNS}
        rows={rows}
        rowHeight={rowHeight}
        rowKey={(row) => row.id}
        selected={selected}
        onSelect={(row) => setSelected(row.id)}
        empty={<p>nothing</p>}
      />
    </div>
  );
}

const row = (name: string) => page.getByRole("row", { name: new RegExp(`^${name} `) });
const focused = () => document.activeElement?.firstElementChild?.textContent;

test("on paper all rows are there", async () => {
  await render(<Table rows={things(0, 300)} />);
  await expect.element(row("t299")).not.toBeInTheDocument();
  dispatchEvent(new Event("beforeprint"));
  expect(row("t299").query()).not.toBeNull();
  expect(document.querySelectorAll("[role=row]").length).toBe(301);
  dispatchEvent(new Event("afterprint"));
  await expect.element(row("t299")).not.toBeInTheDocument();
});

test("paper ends with how many rows there are where it has not all of them", async () => {
  await render(<Table rows={things(0, 2_001)} />);
  expect(page.getByText(/rows are shown/).query()).toBeNull();
  dispatchEvent(new Event("beforeprint"));
  expect(page.getByRole("row").elements().at(-1)?.textContent).toBe("2,000 of 2,001 rows are shown");
  expect(row("t1999").query()).not.toBeNull();
  dispatchEvent(new Event("afterprint"));
  await expect.element(page.getByText(/rows are shown/)).not.toBeInTheDocument();
});

test("on paper heads that sort and values that filter are there, and buttons are not", async () => {
  await render(
    <>
      <Words />
      <button type="button">Load</button>
    </>,
  );
  await expect.element(page.getByRole("button", { name: "Load" })).toBeVisible();
  await cdp().send("Emulation.setEmulatedMedia", { media: "print" });
  try {
    await expect.element(page.getByText("Load")).not.toBeVisible();
    await expect.element(page.getByText("Name")).toBeVisible();
  } finally {
    await cdp().send("Emulation.setEmulatedMedia", { media: "" });
  }
});

test("of many rows those in view exist, and all are counted", async () => {
  await render(<Table rows={things(0, 10_000)} />);
  await expect.element(page.getByRole("grid", { name: "Things" })).toHaveAttribute("aria-rowcount", "10001");
  await expect.element(row("t0")).toBeVisible();
  expect(page.getByRole("row").length).toBeLessThan(60);
});

test("the keyboard moves through all rows and Enter selects", async () => {
  await render(<Table rows={things(0, 10_000)} />);
  await expect.element(row("t0")).toBeVisible();
  await userEvent.keyboard("{Tab}{ArrowDown}{ArrowDown}");
  await expect.poll(focused).toBe("t2");
  await userEvent.keyboard("{End}");
  await expect.poll(focused).toBe("t9999");
  await userEvent.keyboard("{ArrowUp}{Enter}");
  await expect.element(row("t9998")).toHaveAttribute("aria-selected", "true");
  await userEvent.keyboard("{Home}");
  await expect.poll(focused).toBe("t0");
});

test("a click selects, and only that row", async () => {
  await render(<Table rows={things(0, 5)} />);
  await row("t3").click();
  await expect.element(row("t3")).toHaveAttribute("aria-selected", "true");
  expect(document.querySelectorAll("[aria-selected=true]").length).toBe(1);
});

test("rows that come in above do not move those in view, unless the top is in view", async () => {
  const { rerender } = await render(<Table rows={things(100, 1000)} />);
  const grid = page.getByRole("grid").element();
  await rerender(<Table rows={things(99, 1000)} />);
  expect(grid.scrollTop).toBe(0);
  grid.scrollTop = 300;
  await expect.poll(() => grid.scrollTop).toBe(300);
  await rerender(<Table rows={things(90, 1000)} />);
  await expect.poll(() => grid.scrollTop).toBe(300 + 9 * 32);
});

const top = (name: string) => row(name).element().getBoundingClientRect().top;

test("rows that get another height stand below each other", async () => {
  const { rerender } = await render(<Table rows={things(0, 50)} />);
  await rerender(<Table rows={things(0, 50)} rowHeight={48} />);
  await expect.poll(() => top("t3") - top("t2")).toBe(48);
});

test("no rows are what the view says about it", async () => {
  await render(<Table rows={[]} />);
  await expect.element(page.getByText("nothing")).toBeVisible();
});

test("it is accessible in light and dark", async () => {
  await render(<Table rows={things(0, 5)} />);
  await row("t3").click();
  await inBothThemes(() => expectAccessible());
});

const arriving = (rows: readonly Thing[]) => <DataTable label="Things" columns={COLUMNS} rows={rows} rowKey={({ id }) => id} cameAt={({ id }) => Number(id.slice(1))} />;
const marked = () => document.getAnimations().flatMap((each) => (each instanceof CSSAnimation && each.effect instanceof KeyframeEffect ? (each.effect.target?.firstElementChild?.textContent ?? []) : []));

test("a row that came after the table was opened is marked until the mark has faded", async () => {
  const { rerender } = await render(arriving([]));
  await rerender(arriving(things(0, 3)));
  expect(marked()).toEqual([]);
  await rerender(arriving(things(0, 5)));
  await expect.poll(marked).toEqual(["t3", "t4"]);
  for (const each of document.getAnimations()) each.finish();
  await rerender(arriving(things(0, 6)));
  await expect.poll(marked).toEqual(["t5"]);
});

interface Word {
  name: string;
  size: number | null;
}

const WORDS: readonly Word[] = [
  { name: "b2", size: 3 },
  { name: "b10", size: null },
  { name: "a", size: 7 },
];

const WORD_COLUMNS: readonly Column<Word>[] = [
  { key: "name", head: "Name", width: { fit: [2, 30] }, sortBy: ({ name }) => name, cell: ({ name }) => name },
  { key: "size", head: "Size", width: { grow: 1, least: 4 }, sortBy: ({ size }) => size, cell: ({ size }) => size },
  { key: "wide", head: "Wide", width: "8rem", from: 50, cell: () => "w" },
];

function Words({ rows = WORDS, width = 900 }: { rows?: readonly Word[]; width?: number }) {
  return (
    <div style={{ display: "flex", flexDirection: "column", height: 300, width }}>
      <DataTable label="Words" remember="words" columns={WORD_COLUMNS} rows={rows} rowKey={({ name }) => name} />
    </div>
  );
}

const names = () => [...document.querySelectorAll("[role=row] [role=gridcell]:first-child")].map(({ textContent }) => textContent);
const widthOf = (head: string) => Math.round(page.getByRole("columnheader", { name: head }).element().getBoundingClientRect().width);
const forget = () => localStorage.removeItem("table words");

test("heads sort up, down and not at all: numbers in names count, what has no value is last, and the browser remembers it", async () => {
  forget();
  const { unmount } = await render(<Words />);
  await expect.poll(names).toEqual(["b2", "b10", "a"]);
  const name = page.getByRole("button", { name: "Name" });
  await name.click();
  await expect.poll(names).toEqual(["a", "b2", "b10"]);
  await expect.element(page.getByRole("columnheader", { name: "Name" })).toHaveAttribute("aria-sort", "ascending");
  await name.click();
  await expect.poll(names).toEqual(["b10", "b2", "a"]);
  await name.click();
  await expect.poll(names).toEqual(["b2", "b10", "a"]);
  await page.getByRole("button", { name: "Size" }).click();
  await page.getByRole("button", { name: "Size" }).click();
  await expect.poll(names).toEqual(["a", "b2", "b10"]);
  await unmount();
  await render(<Words />);
  await expect.poll(names).toEqual(["a", "b2", "b10"]);
  forget();
});

test("a column that fits its content grows with what comes; with Alt and an arrow any has the width that a person wants, until a double click on its edge", async () => {
  forget();
  const { rerender, unmount } = await render(<Words />);
  await expect.poll(names).toHaveLength(3);
  const before = widthOf("Name");
  await rerender(<Words rows={[...WORDS, { name: "a name that is much longer than the others", size: 1 }]} />);
  await expect.poll(() => widthOf("Name")).toBeGreaterThan(before + 100);
  const fitted = widthOf("Name");
  page.getByRole("button", { name: "Name" }).element().focus();
  await userEvent.keyboard("{Alt>}{ArrowLeft}{ArrowLeft}{/Alt}");
  await expect.poll(() => widthOf("Name")).toBe(fitted - 32);
  await unmount();
  await render(<Words />);
  await expect.poll(() => widthOf("Name")).toBe(fitted - 32);
  page.getByRole("columnheader", { name: "Name" }).element().querySelector(":scope > [aria-hidden]")?.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  await expect.poll(() => widthOf("Name")).toBeLessThan(fitted - 100);
  forget();
});

test("a column that fits its content is measured again when a font has come", async () => {
  forget();
  await render(<Words />);
  await expect.poll(names).toHaveLength(3);
  const before = widthOf("Name");
  const wider = document.createElement("style");
  wider.textContent = "[role=grid] { letter-spacing: 20px }";
  document.head.append(wider);
  document.fonts.dispatchEvent(new Event("loadingdone"));
  await expect.poll(() => widthOf("Name")).toBeGreaterThan(before + 20);
  wider.remove();
  forget();
});

test("a font that makes a text a part of a pixel wider than its column cuts no letter", async () => {
  forget();
  await render(<Words rows={[{ name: "longer than its head", size: 1 }]} />);
  await expect.poll(() => widthOf("Name")).toBeGreaterThan(60);
  const text = page.getByRole("gridcell").first().element();
  const needed = () => {
    const range = document.createRange();
    range.selectNodeContents(text);
    return range.getBoundingClientRect().width;
  };
  // as wide as the column, and 0.4 px more
  const more = (text.getBoundingClientRect().width + 0.4 - needed()) / (text.textContent?.length ?? 1);
  const wider = document.createElement("style");
  wider.textContent = `[role=grid] { letter-spacing: ${more}px }`;
  document.head.append(wider);
  document.fonts.dispatchEvent(new Event("loadingdone"));
  await expect.poll(() => text.getBoundingClientRect().width).toBeGreaterThanOrEqual(needed());
  wider.remove();
  forget();
});

test("a column for which there is no room is not there, and what cannot be remembered is begun anew", async () => {
  localStorage.setItem("table words", "{no JSON");
  const { rerender } = await render(<Words width={600} />);
  await expect.poll(() => page.getByRole("columnheader").length).toBe(2);
  await rerender(<Words width={900} />);
  await expect.poll(() => page.getByRole("columnheader").length).toBe(3);
  forget();
});
