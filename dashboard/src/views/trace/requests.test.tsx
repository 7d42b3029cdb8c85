import { expect, test } from "vitest";
import { cdp, page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { sessionRow } from "~/testing/rows";
import { callAndPing, Story } from "~/testing/story";
import { openTrace, rowTexts } from "~/testing/view";

const rows = () => page.getByRole("treegrid").getByRole("row");
// on the time of a row: other cells filter by their value
const AT_TIME = { position: { x: 40, y: 12 } };
const param = (name: string) => new URLSearchParams(location.search).get(name);
const drawer = () => page.getByRole("complementary");
const head = (name: RegExp) => page.getByRole("columnheader", { name });

test("without a client it says how to connect one", async () => {
  await openTrace("");
  await expect.element(page.getByRole("heading", { name: "No client has connected since the server started" })).toBeVisible();
});

test("a line for each request, oldest first, with its status and how it ended; the head of the time turns the order round in the address", async () => {
  await openTrace("", callAndPing());
  await expect.element(page.getByRole("treegrid", { name: "Requests, oldest first" })).toBeVisible();
  expect(rowTexts().slice(1)).toEqual([expect.stringMatching(/s1 +one▸tools\/call progress.*200completed 3 progress · done by s1.*ms/), expect.stringMatching(/ping.*no answer yet/)]);
  await expect.element(head(/^Time$|^Time [↑↓]/)).toHaveAttribute("aria-sort", "ascending");
  await page.getByRole("button", { name: /^Time/ }).click();
  expect(param("order")).toBe("newest");
  await expect.poll(() => rowTexts()[0]).toMatch("ping");
});

test("the words of the server say how a request ended, and HTTP is named as HTTP", async () => {
  const story = new Story();
  const { exchange } = story.request(null, 1, "ping");
  story.entries.length = 1;
  story.rows[exchange] = { request: "POST /mcp", unreadable: "syntax", head: 1, method: null, status: 400, ending: { state: "refused", by: null, steps: null, steps_total: null, stopped_ms: null, sent_after: 0, code: null, detail: "it ends too early", text: "it ends too early" } };
  await openTrace("", story);
  await expect.poll(() => rowTexts()[1]).toMatch(/POST \/mcp not JSON.*400refused it ends too early/);
});

test("a refusal is not said twice, in the words of the server and in those of its answer", async () => {
  const story = new Story();
  const { exchange, seq } = story.request(null, 1, "tools/call");
  const refused = story.add({ kind: "message.emitted", rpc: "error", method: null, id: 1, exchange, cause: seq, message: { jsonrpc: "2.0", id: 1, error: { code: -32_602, message: "Unknown tool: nope" } } });
  const text = "-32602: Unknown tool: nope";
  story.rows[exchange] = { answer: refused, ending: { state: "protocol_error", by: null, steps: null, steps_total: null, stopped_ms: null, sent_after: 0, code: -32_602, detail: "Unknown tool: nope", text } };
  await openTrace("", story);
  await expect.poll(() => rowTexts()[1]).toMatch(/protocol error -32602: Unknown tool: nope(?!.*nope)/);
});

test("rows are sorted by a column, and gaps and the way to older ones are left out then", async () => {
  const story = callAndPing();
  const { fake } = await openTrace("", story);
  fake.source.say("gap", { reason: "evicted", first: 90, last: 99 }, "a-99");
  fake.frame();
  await expect.poll(() => rowTexts().at(-1)).toMatch("gap");
  await page.getByRole("button", { name: "Request", exact: true }).click();
  await expect.poll(() => rowTexts().map((text) => /ping|tools\/call/.exec(text ?? "")?.[0])).toEqual(["ping", "tools/call"]);
  await page.getByRole("button", { name: /^Request/ }).click();
  await expect.poll(() => rowTexts().map((text) => /ping|tools\/call/.exec(text ?? "")?.[0])).toEqual(["tools/call", "ping"]);
  await page.getByRole("button", { name: /^Request/ }).click();
  await expect.poll(() => rowTexts().length).toBe(4);
});

test("a click on a value filters by it, and with Alt leaves it out; a click beside it opens the request", async () => {
  await openTrace("", callAndPing(), (path) => (path === "/api/search" ? { run: "a", matched: 0, total: 9, last: 99, next: null, left_out: 0, events: [], exchanges: [] } : undefined));
  await page.getByRole("button", { name: "tools/call" }).click();
  expect(param("filter")).toBe("method:tools/call");
  expect(param("at")).toBeNull();
  await page.getByRole("button", { name: "s1" }).first().click({ modifiers: ["Alt"] });
  expect(param("filter")).toBe("method:tools/call -client:s1");
});

test("a line unfolds by click and by keyboard to its messages, and progress to each report", async () => {
  await openTrace("", callAndPing());
  await rows().nth(2).getByRole("button", { name: "Unfold" }).click();
  await expect.element(rows().nth(2)).toHaveAttribute("aria-expanded", "true");
  await expect.element(page.getByText("progress × 3", { exact: true })).toBeVisible();
  expect(page.getByText(/step 2/).query()).toBeNull();
  await page.getByText("progress × 3", { exact: true }).click();
  await expect.element(page.getByText(/step 2/)).toBeVisible();
  await rows().nth(2).click(AT_TIME);
  await userEvent.keyboard("{Escape}{ArrowLeft}");
  await expect.element(rows().nth(2)).toHaveAttribute("aria-expanded", "false");
  await userEvent.keyboard("{ArrowRight}");
  await expect.element(rows().nth(2)).toHaveAttribute("aria-expanded", "true");
});

test("a line shows the message that was sent before anything else, and the back button leads out of it", async () => {
  await openTrace("", callAndPing());
  await rows().nth(2).click(AT_TIME);
  await expect.element(drawer().getByRole("heading", { name: "tools/call request #3" })).toBeVisible();
  const [message, related, recorded] = ["message", "Related", "When, where and under what names it was recorded"].map((text) => drawer().getByText(text, { exact: true }).first().element().getBoundingClientRect().top);
  expect(message).toBeLessThan(related ?? 0);
  expect(related).toBeLessThan(recorded ?? 0);
  expect(drawer().getByText("monotonic").query()).toBeNull();
  history.back();
  await expect.element(drawer()).not.toBeInTheDocument();
  expect([param("at"), location.pathname]).toEqual([null, "/dashboard/trace"]);
});

test("the newest lines stay in view while they are followed, and a scroll away ends that", async () => {
  const story = new Story();
  for (let id = 0; id < 100; id += 1) story.request("s1", id, "ping");
  const { play } = await openTrace("", story);
  const grid = page.getByRole("treegrid").element();
  const distance = () => grid.scrollHeight - grid.clientHeight - grid.scrollTop;
  await expect.poll(distance).toBeLessThan(2);
  story.request("s1", 200, "ping");
  play();
  await expect.poll(distance).toBeLessThan(2);
  grid.scrollTop = 500;
  await expect.element(page.getByRole("button", { name: "Follow" })).toHaveAttribute("aria-pressed", "false");
  story.request("s1", 201, "ping");
  play();
  await expect.element(page.getByRole("button", { name: "↓ 1 new" })).toBeVisible();
  expect(grid.scrollTop).toBe(500);
  await page.getByRole("button", { name: "↓ 1 new" }).click();
  await expect.poll(distance).toBeLessThan(2);
  await expect.element(page.getByRole("button", { name: "Follow" })).toHaveAttribute("aria-pressed", "true");
});

test("the newest lines stay in view, too, for people who want less motion", async () => {
  await cdp().send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "reduce" }] });
  try {
    const story = new Story();
    story.request("s1", 0, "ping");
    const { play } = await openTrace("", story);
    const grid = page.getByRole("treegrid").element();
    for (let id = 1; id < 100; id += 1) story.request("s1", id, "ping");
    play();
    await expect.element(page.getByRole("treegrid")).toHaveAttribute("aria-rowcount", String(1 + 1 + 100));
    await expect.poll(() => grid.scrollHeight - grid.clientHeight).toBeGreaterThan(1000);
    expect(grid.scrollHeight - grid.clientHeight - grid.scrollTop).toBeLessThan(2);
  } finally {
    await cdp().send("Emulation.setEmulatedMedia", { features: [] });
  }
});

test("a cleared view says when and how many requests it hides, and shows them again", async () => {
  const story = callAndPing();
  const { play } = await openTrace("", story);
  await page.getByRole("button", { name: "Clear view" }).click();
  await expect.element(page.getByText(/^Cleared at \d\d:\d\d:\d\d\.\d{3}|: 2 requests hidden\./).first()).toBeVisible();
  await expect.element(page.getByRole("heading", { name: "This list is empty" })).toBeVisible();
  story.request("s1", 50, "ping");
  play();
  await expect.poll(() => rowTexts().length).toBe(2);
  await page.getByRole("button", { name: "Show them" }).click();
  await expect.poll(() => rowTexts().length).toBe(4);
});

test("what was open when a file was saved is open at its end: it neither runs nor goes on", async () => {
  const story = callAndPing();
  const { exchange } = story.request("s1", 3, "tools/call", { name: "sleep", arguments: {} });
  story.add({ kind: "call.started", call: "c9", session: "s1", request_id: 3, exchange, method: "tools/call", tool: "sleep", progress_token: null, cause: null });
  story.add({ kind: "limit.reached", limit: "x", value: 1, exchange });
  const file = { name: "a.mcpprobe" };
  await openTrace("?order=newest", story, (path) => (path === "/api/server" ? { file, settings: [] } : undefined));
  await expect.poll(() => rowTexts()[0]).toMatch(/tools\/call.*open at the end/);
  expect(rowTexts()[1]).toMatch(/ping.*open at the end/);
  const titles = [...document.querySelectorAll("[title^=began]")].map((bars) => bars.getAttribute("title"));
  expect(titles.filter((title) => title?.endsWith(", open at the end of the log"))).toHaveLength(2);
  await page.getByRole("button", { name: "Legend" }).click();
  const legend = page.getByRole("group", { name: "Legend" });
  await expect.element(legend).toMatchTextContent("open at the end of the log");
  await expect.element(legend).not.toMatchTextContent("goes on");
  await page.getByRole("row").nth(1).click(AT_TIME);
  await drawer().getByRole("button", { name: "Only this time" }).click();
  // the last entry is of 19 ms after the beginning, not of today
  expect(Number(param("until"))).toBeLessThan(1_790_000_001);
});

test("what a row cuts of an outcome stands whole in the panel of its request", async () => {
  await openTrace("", callAndPing());
  await page.getByRole("row").filter({ hasText: "tools/call" }).first().click(AT_TIME);
  await expect.element(drawer()).toMatchTextContent(/Outcome of the request: ?completed/);
});

test("a list that is sorted by outcome says what it sorts, loads the rest, and goes back to the order of time", async () => {
  await openTrace("", callAndPing());
  await head(/^Outcome/).getByRole("button").click();
  await head(/^Outcome/).getByRole("button").click();
  await expect.element(page.getByText("Sorted: the 2 requests that this page has loaded.")).toBeVisible();
  await expect.poll(() => rowTexts().map((text) => /ping|tools\/call/.exec(text ?? "")?.[0])).toEqual(["ping", "tools/call"]);
  await expect.element(page.getByText("This is the beginning of the log.")).toBeVisible();
  await page.getByRole("button", { name: "By time again" }).click();
  await expect.element(head(/^Time/).first()).toHaveAttribute("aria-sort", "ascending");
  expect(page.getByText(/^Sorted:/).query()).toBeNull();
});

test("the waterfall draws the work and the messages of the rows in view, and a legend says what its marks mean", async () => {
  const story = callAndPing();
  const { fake } = await openTrace("", story);
  fake.source.say("rows", { table: "sessions", rows: [sessionRow({ client_name: "one" })] });
  fake.frame();
  const [bars] = page.getByRole("treegrid").element().querySelectorAll("[title^=began]");
  expect(bars?.getAttribute("title")).toMatch(/^began \d\d:\d\d:\d\d\.\d{3}, ended after \d+ ms$/);
  // the request, its work, three reports and the answer
  expect(bars?.children.length).toBe(6);
  await page.getByRole("button", { name: "Legend" }).click();
  await expect.element(page.getByRole("group", { name: "Legend" })).toMatchTextContent(/the moment of a cancellation/);
});

test("the strip chooses a part of the time by dragging and by keyboard, and all of it again", async () => {
  const story = new Story();
  for (let id = 0; id < 100; id += 1) story.request("s1", id, "ping");
  await openTrace("", story);
  const strip = page.getByRole("group", { name: "Time shown" });
  await expect.element(page.getByText("100 requests shown")).toBeVisible();
  const until = page.getByRole("slider", { name: "Shown until" });
  until.element().focus();
  await userEvent.keyboard("{PageDown}{PageDown}{PageDown}{PageDown}{PageDown}");
  await expect.poll(() => Number(param("until"))).toBeGreaterThan(1_790_000_000);
  await expect.element(page.getByText(/^5\d requests shown/)).toBeVisible();
  expect(until.element().getAttribute("aria-valuenow")).toBe("50");
  await strip.getByRole("button", { name: "All of the time" }).click();
  expect([param("from"), param("until")]).toEqual([null, null]);
  await expect.element(page.getByText("100 requests shown")).toBeVisible();
  const box = until.element().parentElement?.getBoundingClientRect();
  if (box === undefined) throw new Error("there is a strip");
  const at = (share: number) => ({ clientX: box.left + share * box.width, clientY: box.top + 5, pointerId: 1, button: 0, bubbles: true });
  const target = until.element().parentElement;
  if (target === null) throw new Error("there is a strip");
  target.setPointerCapture = () => undefined;
  target.dispatchEvent(new PointerEvent("pointerdown", at(0.25)));
  await expect.poll(() => (target.dispatchEvent(new PointerEvent("pointermove", at(0.5))), target.dispatchEvent(new PointerEvent("pointerup", at(0.5))), param("from"))).not.toBeNull();
  // those before it wait for their answers, so they reach into it
  await expect.element(page.getByText(/^5\d requests shown/)).toBeVisible();
  expect(rowTexts().length).toBeGreaterThan(20);
  expect(page.getByText(/, \d+ ms of \d+ ms/).query()).not.toBeNull();
});

test("a request of an earlier run stays in its place, and the restart is said behind it", async () => {
  const { fake, play } = await openTrace("", callAndPing());
  fake.source.fail();
  fake.source.hello("b", { id: "b-0" });
  fake.source.say("gap", { reason: "restarted", first: null, last: null }, "b-0");
  const next = new Story();
  next.request("s1", 1, "tools/list");
  play(next, "b");
  await expect.poll(() => rowTexts().slice(1).map((text) => /ping|tools\/\w+|restarted/.exec(text ?? "")?.[0])).toEqual(["tools/call", "ping", "restarted", "tools/list"]);
  expect(rowTexts()[3]).toMatch("the server was started again");
});

test("on a phone a request is a card of two lines, and on a tablet the outcome stays", { timeout: 30_000 }, async () => {
  await page.viewport(390, 800);
  await openTrace("", callAndPing());
  await expect.element(head(/^Request$/)).toBeVisible();
  expect(page.getByRole("columnheader").elements().length).toBe(1);
  await expect.poll(() => rowTexts()[1]).toMatch(/tools\/call progress.*200 completed/);
  expect(page.getByRole("button", { name: "Legend" }).query()).toBeNull();
  const choice = page.getByRole("combobox", { name: "Sort by" });
  const controls = page.getByRole("button", { name: "Controls" });
  // the title, the filter line, and one line of buttons
  expect(page.getByRole("treegrid").element().getBoundingClientRect().top).toBeLessThan(160);
  expect(["Pause", "Follow", "Clear view"].filter((name) => page.getByRole("button", { name }).query() !== null)).toEqual([]);
  expect(choice.query()).toBeNull();
  await controls.click();
  await page.getByRole("button", { name: "Pause" }).click();
  await controls.click();
  // what is out of the ordinary stays in view
  await page.getByRole("button", { name: "Resume (0 new)" }).click();
  await controls.click();
  await choice.selectOptions("Outcome");
  await expect.element(page.getByText("Sorted: the 2 requests that this page has loaded.")).toBeVisible();
  await page.getByRole("combobox", { name: "Sort by" }).selectOptions("Time, the newest first");
  await expect.poll(() => param("order")).toBe("newest");
  await page.viewport(820, 800);
  await expect.element(head(/^Outcome/)).toBeVisible();
  expect(head(/^Time line/).query()).toBeNull();
});

test("it is accessible in light and dark, folded, open and with its legend", { timeout: 60_000 }, async () => {
  await openTrace("", callAndPing());
  await rows().nth(2).getByRole("button", { name: "Unfold" }).click();
  await page.getByRole("button", { name: "Legend" }).click();
  await inBothThemes(() => expectAccessible());
  await rows().nth(2).click(AT_TIME);
  await inBothThemes(() => expectAccessible());
});
