// What the official TypeScript SDK 1.32.2 sees of the server at PROBE_URL. tests/clients/test_typescript_sdk.py runs each story.

import assert from "node:assert/strict";
import { test as story } from "node:test";
import { CallToolResultSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { Person, beginTask, callTool, connected, settledRecords, taskMessages, throughProxy } from "./support.mjs";

const RELATED_TASK = "io.modelcontextprotocol/related-task";
const test = (name, body) => story(name, { timeout: 30_000 }, body);
const types = (messages) => messages.map((message) => message.type);
const range = (count) => Array.from({ length: count }, (_, at) => at + 1);

// --- calls

test("connecting negotiates the newest legacy revision and tells who serves", () =>
  connected(async (client, transport) => {
    assert.equal(transport.protocolVersion, "2025-11-25");
    assert.equal(client.getServerVersion().name, "mcp-probe");
    assert.ok(client.getServerCapabilities().tasks.requests.tools.call);
    await client.ping();
  }));

test("every tool that answers by itself gives what its output schema promises", () =>
  connected(async (client) => {
    const expected = [
      ["simple_tool", { delayMs: 20 }, { message: "Completed after 20ms" }],
      ["sync_with_progress", { itemCount: 3, delayPerItemMs: 10 }, { processedItems: 3 }],
      ["sync_with_progress", { itemCount: 2, delayPerItemMs: 10, mode: "indeterminate" }, { processedItems: 2 }],
      ["progress", { steps: 2, step_ms: 5 }, { steps: 2, notified: false, done: true }],
      ["sampling_demo", { style: "haiku" }, { text: "old pond" }],
    ];
    for (const [name, args, structured] of expected) {
      assert.deepEqual((await callTool(client, name, args)).structuredContent, structured, name);
    }
  }));

test("streaming tools give exactly their blocks", () =>
  connected(async (client) => {
    const long = await callTool(client, "long_output", { blocks: 3, chars: 65536 });
    assert.deepEqual(long.content.map((block) => block.text.length), [65536, 65536, 65536]);
    const chatty = await callTool(client, "chatty");
    assert.equal(chatty.content[3].text, "fourth block: unicode; café résumé naïve");
  }));

test("every conformance fixture gives its kinds of content", () =>
  connected(async (client) => {
    const expected = [
      ["test_simple_text", {}, ["text"]],
      ["test_image_content", {}, ["image"]],
      ["test_audio_content", {}, ["audio"]],
      ["test_embedded_resource", {}, ["resource"]],
      ["test_multiple_content_types", {}, ["text", "image", "resource"]],
      ["test_tool_with_logging", {}, ["text"]],
      ["test_tool_with_progress", {}, ["text"]],
      ["test_sampling", { prompt: "Say hi" }, ["text"]],
      ["test_elicitation", { message: "Who are you?" }, ["text"]],
      ["test_elicitation_sep1034_defaults", {}, ["text"]],
      ["test_elicitation_sep1330_enums", {}, ["text"]],
      ["test_reconnection", {}, ["text"]],
      ["json_schema_2020_12_tool", { email: "a@b.example" }, ["text"]],
    ];
    for (const [name, args, kinds] of expected) {
      const result = await callTool(client, name, args);
      assert.deepEqual([result.isError ?? false, ...types(result.content)], [false, ...kinds], name);
    }
    assert.equal((await callTool(client, "test_error_handling")).isError, true);
  }));

test("progress arrives in order, one report per step, before the result", () =>
  connected(async (client) => {
    const seen = [];
    const result = await callTool(client, "progress", { steps: 6, step_ms: 20 }, { onprogress: (at) => seen.push(at) });
    assert.deepEqual(seen, range(6).map((step) => ({ progress: step, total: 6, message: `step ${step}/6` })));
    assert.deepEqual(result.structuredContent, { steps: 6, notified: true, done: true });
  }));

test("an unknown tool and a task tool called without a task are protocol errors", () =>
  connected(async (client) => {
    await assert.rejects(callTool(client, "no_such_tool"), { code: -32602 });
    const call = { method: "tools/call", params: { name: "pure_task", arguments: {} } };
    await assert.rejects(client.request(call, CallToolResultSchema), { code: -32601 });
  }));

test("aborting a call mid-way stops its work at the server, with the reason", () =>
  connected(async (client) => {
    const abort = new AbortController();
    const onprogress = ({ progress }) => progress === 3 && abort.abort("seen enough");
    const call = callTool(client, "progress", { steps: 91, step_ms: 50 }, { onprogress, signal: abort.signal });
    await assert.rejects(call, /seen enough/);
    const [record] = await settledRecords(({ arguments: given }) => given.steps === 91);
    assert.deepEqual(
      [record.outcome, record.cancelled_by, record.cancel_reason, record.answered],
      ["cancelled", "notification", "seen enough", false],
    );
    assert.ok(record.steps_done >= 3 && record.steps_done < 91);
    await client.ping();
  }));

// --- the server asks

test("sampling returns what the model wrote, and a refusal as a tool error", async () => {
  const person = new Person();
  await connected(
    async (client) => {
      const result = await callTool(client, "sampling_demo", { theme: "space", maxTokens: 99 });
      assert.deepEqual([result.structuredContent, person.asked[0].maxTokens], [{ text: "old pond" }, 99]);
      person.text = null;
      const refused = await callTool(client, "sampling_demo");
      assert.equal(refused.isError, true);
      assert.match(refused.content[0].text, /User rejected sampling request/);
    },
    { person },
  );
});

test("the tool learns whether a form was accepted, declined or dismissed", async () => {
  const person = new Person();
  await connected(
    async (client) => {
      for (const action of ["accept", "decline", "cancel"]) {
        person.answer = { action, ...(action === "accept" && { content: { username: "ada", email: "ada@b.example" } }) };
        const { content } = await callTool(client, "test_elicitation", { message: "Who are you?" });
        assert.match(content[0].text, new RegExp(action));
        assert.equal(content[0].text.includes("ada@b.example"), action === "accept");
      }
    },
    { person },
  );
});

test("a client that declared nothing is told so at the call", () =>
  connected(
    async (client) => {
      await assert.rejects(callTool(client, "sampling_demo"), /sampling/);
      const [{ error }] = await taskMessages(client, "pausable_task");
      assert.match(error.message, /elicitation/);
    },
    { person: new Person({ capabilities: {} }) },
  ));

// --- tasks

test("each task that completes is created, polled and gives its result", () =>
  connected(async (client) => {
    const expected = [
      ["pure_task", { durationMs: 1000 }, { message: "Completed after 1000ms" }],
      ["task_with_progress", { itemCount: 4, delayPerItemMs: 20 }, { processedItems: 4 }],
      ["multi_stage_task", { stageCount: 2, msPerStage: 500 }, { stagesCompleted: ["Initializing", "Finalizing"] }],
    ];
    for (const [name, args, structured] of expected) {
      const messages = await taskMessages(client, name, args);
      const [created, last] = [messages[0], messages.at(-1)];
      assert.deepEqual([created.type, created.task.status], ["taskCreated", "working"], name);
      assert.deepEqual(new Set(types(messages.slice(1, -1))), new Set(["taskStatus"]), name);
      assert.deepEqual([last.type, last.result?.structuredContent], ["result", structured], name);
      assert.deepEqual(last.result._meta[RELATED_TASK], { taskId: created.task.taskId }, name);
    }
  }));

test("progress goes on after the handle until the task is over", () =>
  connected(async (client) => {
    const seen = [];
    const options = { onprogress: ({ progress, total }) => seen.push([progress, total]) };
    await taskMessages(client, "task_with_progress", { itemCount: 5, delayPerItemMs: 30 }, options);
    assert.deepEqual(seen, range(5).map((item) => [item, 5]));
  }));

test("a failed task ends in its own error", () =>
  connected(async (client) => {
    for (const errorCode of ["internal", "validation", "timeout"]) {
      const messages = await taskMessages(client, "failing_task", { failAfterMs: 1000, errorCode });
      const { taskId } = messages[0].task;
      assert.equal(messages.at(-1).type, "error");
      const task = await client.experimental.tasks.getTask(taskId);
      assert.deepEqual([task.status, task.statusMessage], ["failed", `Simulated ${errorCode} error`]);
      await assert.rejects(client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema), { data: { code: errorCode } });
    }
  }));

test("a paused task whose question is accepted goes on and completes", async () => {
  const person = new Person({ answer: { action: "accept", content: { continue: true } } });
  await connected(
    async (client) => {
      const messages = await taskMessages(client, "pausable_task", { itemCount: 2, pauseAfterItem: 1 });
      assert.deepEqual(messages.at(-1).result?.structuredContent, { processedItems: 2, pausedAt: 1 });
      assert.deepEqual(person.asked.map(({ _meta }) => _meta[RELATED_TASK].taskId), [messages[0].task.taskId]);
    },
    { person },
  );
});

test("a paused task whose question is declined, dismissed or answered with no ends cancelled", async () => {
  const person = new Person();
  const answers = [{ action: "decline" }, { action: "cancel" }, { action: "accept", content: { continue: false } }];
  await connected(
    async (client) => {
      for (const answer of answers) {
        person.answer = answer;
        const messages = await taskMessages(client, "pausable_task", { itemCount: 2, pauseAfterItem: 1 });
        assert.equal(messages.at(-1).type, "error");
        const task = await client.experimental.tasks.getTask(messages[0].task.taskId);
        assert.equal(task.status, "cancelled");
        assert.match(task.statusMessage, /^Cancelled after item 1 of 2: /);
      }
      assert.equal(person.asked.length, answers.length);
    },
    { person },
  );
});

test("a task cancelled mid-way is cancelled at once and for good", () =>
  connected(async (client) => {
    const { tasks } = client.experimental;
    const { taskId } = await beginTask(client, "cancellable_task", { durationMs: 10_000 });
    assert.equal((await tasks.cancelTask(taskId)).status, "cancelled");
    await assert.rejects(tasks.cancelTask(taskId), { code: -32602 });
    await assert.rejects(tasks.getTaskResult(taskId, CallToolResultSchema), /cancelled/);
    assert.equal((await tasks.getTask(taskId)).status, "cancelled");
    const [record] = await settledRecords(({ task }) => task === taskId);
    assert.deepEqual([record.outcome, record.cancelled_by, record.done], ["cancelled", "tasks_cancel", false]);
  }));

test("the list holds this session's tasks, in order", () =>
  connected(async (client) => {
    const mine = [];
    for (let at = 0; at < 3; at += 1) mine.push((await beginTask(client, "cancellable_task", {})).taskId);
    const { tasks } = await client.experimental.tasks.listTasks();
    assert.deepEqual(tasks.map(({ taskId }) => taskId), mine);
    await connected(async (other) => assert.deepEqual((await other.experimental.tasks.listTasks()).tasks, []));
  }));

// --- connections that drop: 2025-11-25 basic/transports, "Disconnection [...] SHOULD NOT be interpreted as [...] cancelling"

test("a call whose connection is cut is resumed: every message once, in order, and the result", () =>
  throughProxy((url, cut) =>
    connected(
      async (client) => {
        const seen = [];
        const onprogress = ({ progress }) => {
          seen.push(progress);
          if (progress === 4) cut();
        };
        const result = await callTool(client, "progress", { steps: 17, step_ms: 40 }, { onprogress });
        assert.deepEqual(result.structuredContent, { steps: 17, notified: true, done: true });
        assert.deepEqual(seen, range(17));
        const [record] = await settledRecords(({ arguments: given }) => given.steps === 17);
        assert.deepEqual([record.outcome, record.emitted, record.delivered], ["completed", 17, 17]);
      },
      { url },
    ),
  ));

test("a call whose connection is cut again and again still loses nothing", () =>
  throughProxy((url, cut) =>
    connected(
      async (client) => {
        const seen = [];
        const onprogress = ({ progress }) => {
          seen.push(progress);
          if (progress % 9 === 0) cut();
        };
        await callTool(client, "progress", { steps: 37, step_ms: 30 }, { onprogress });
        assert.deepEqual(seen, range(37));
      },
      { url },
    ),
  ));

test("a task outlives its connection, and the wait for its result is resumed", () =>
  throughProxy((url, cut) =>
    connected(
      async (client) => {
        const { taskId } = await beginTask(client, "multi_stage_task", { stageCount: 3, msPerStage: 500 });
        const result = client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
        setTimeout(cut, 300);
        assert.deepEqual((await result).structuredContent, { stagesCompleted: ["Initializing", "Processing", "Finalizing"] });
      },
      { url },
    ),
  ));

// --- resources, prompts, completion, logging

test("resources are listed, read, filled in and watched", () =>
  connected(async (client) => {
    const first = await client.listResources();
    const second = await client.listResources({ cursor: first.nextCursor });
    const uris = [...first.resources, ...second.resources].map(({ uri }) => uri);
    assert.deepEqual(uris.filter((uri) => uri.startsWith("test:")).length, 3);
    assert.equal(new Set(uris).size, uris.length);
    assert.ok((await client.readResource({ uri: "test://static-binary" })).contents[0].blob);
    const { contents } = await client.readResource({ uri: "test://template/42/data" });
    assert.equal(JSON.parse(contents[0].text).id, "42");
    await assert.rejects(client.readResource({ uri: "test://nothing" }), { code: -32002 });
    const updated = new Promise((resolve) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, resolve));
    await client.subscribeResource({ uri: "test://watched-resource" });
    assert.equal((await updated).params.uri, "test://watched-resource");
    await client.unsubscribeResource({ uri: "test://watched-resource" });
  }));

test("prompts are filled in and their arguments completed", () =>
  connected(async (client) => {
    const filled = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } });
    assert.match(filled.messages[0].content.text, /arg1='a', arg2='b'/);
    const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
    const { completion } = await client.complete({ ref, argument: { name: "arg1", value: "test" } });
    assert.deepEqual(completion.values, ["testValue1", "testing"]);
  }));

test("log messages below the chosen level are not sent", async () => {
  const person = new Person();
  await connected(
    async (client) => {
      await client.setLoggingLevel("warning");
      await callTool(client, "test_tool_with_logging");
      await client.setLoggingLevel("info");
      await callTool(client, "test_tool_with_logging");
      assert.deepEqual(person.logged, ["info", "info", "info"]);
    },
    { person },
  );
});
