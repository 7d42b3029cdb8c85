// What the official TypeScript SDK 2.4.0 sees of the server at PROBE_URL in the modern era, and what the server sees of it.
// tests/clients/test_typescript_sdk_modern.py runs the stories.

import assert from "node:assert/strict";
import { test as story } from "node:test";
import {
  ANYTHING, MODERN, Person, PREFIX, WITH_TASKS, call, connected, gateway, rawCall, received, served, until, watch,
} from "./modern-support.mjs";
import { settledRecords } from "./support.mjs";

const test = (name, body) => story(name, { timeout: 30_000 }, body);
const range = (count) => Array.from({ length: count }, (_, at) => at + 1);
const accepts = (content) => ({ "elicitation/create": { action: "accept", content } });
const WATCHED = "test://watched-resource";

// --- which era

test("a client in auto mode ends up modern, after one discovery and without a session", async () => {
  const events = await watch();
  await connected(async (client, transport) => {
    assert.deepEqual([client.getProtocolEra(), client.getNegotiatedProtocolVersion()], ["modern", MODERN]);
    assert.deepEqual([client.getServerVersion().name, transport.sessionId], ["mcp-probe", undefined]);
    assert.ok(client.getServerCapabilities().extensions[`${PREFIX}tasks`]);
    assert.ok(client.getInstructions());
  });
  assert.deepEqual((await events("message.received")).map(({ message }) => message.method), ["server/discover"]);
  assert.deepEqual(await events("session.opened"), []);
});

test("a client that negotiates nothing, which is the default, gets a legacy session", async () => {
  const events = await watch();
  await connected(
    async (client) => {
      assert.deepEqual([client.getProtocolEra(), client.getNegotiatedProtocolVersion()], ["legacy", "2025-11-25"]);
      await client.ping();
    },
    { mode: "legacy" },
  );
  assert.equal((await received(events, "server/discover")).length, 0);
  assert.deepEqual((await events("session.closed")).map(({ why }) => why), ["deleted"]);
});

test("a client that is pinned gets its revision, or a refusal when the server has not got it", async () => {
  await connected((client) => assert.equal(client.getNegotiatedProtocolVersion(), MODERN), { mode: { pin: MODERN } });
  await assert.rejects(connected(() => {}, { mode: { pin: "2099-01-01" } }), { code: -32022, data: { supported: [MODERN], requested: "2099-01-01" } });
});

test("behind a gateway that refuses the modern era a client falls back to the legacy one", async () => {
  for (const status of [400, 404]) {
    const fetch = gateway(status);
    await connected(
      async (client) => {
        assert.equal(client.getProtocolEra(), "legacy");
        assert.equal((await call(client, "chatty")).content[0].text, "first block: short");
      },
      { transport: { fetch } },
    );
    assert.equal(fetch.refused, 1);
  }
});

test("a client that was told what the server is asks nothing before its first request", async () => {
  const discover = await connected((client) => client.getDiscoverResult());
  const events = await watch();
  await connected((client) => call(client, "chatty"), { connect: { prior: { kind: "modern", discover } } });
  assert.deepEqual((await events("message.received")).map(({ message }) => message.method), ["tools/call"]);
});

test("clients of both eras use one server at the same time", async () => {
  const work = (mode, steps) =>
    connected(
      async (client) => {
        const seen = [];
        await call(client, "progress", { steps, step_ms: 30 }, { onprogress: ({ progress, total }) => seen.push([progress, total]) });
        assert.deepEqual(seen, range(steps).map((step) => [step, steps]));
      },
      { mode },
    );
  await Promise.all([work("auto", 23), work("legacy", 22)]);
  const records = await settledRecords(({ arguments: given }) => given.steps === 23 || given.steps === 22);
  const told = records.map(({ era, revision, steps_done, session }) => [steps_done, era, revision, session[0]]);
  assert.deepEqual(told.sort(), [[22, "legacy", "2025-11-25", "s"], [23, "modern", MODERN, "m"]]);
  const [first, second] = records.map(({ started_at, duration_ms }) => ({ from: started_at, to: started_at + duration_ms / 1000 }));
  assert.ok(first.from < second.to && second.from < first.to, "the calls overlapped");
});

// --- lists, tools, resources, prompts, completion

test("lists are walked to their end and kept as long as the server allows", () =>
  connected(async (client) => {
    const events = await watch();
    for (let time = 0; time < 2; time += 1) {
      const lists = await Promise.all([client.listTools(), client.listResources(), client.listResourceTemplates(), client.listPrompts()]);
      for (const items of lists.map(({ tools, resources, resourceTemplates, prompts }) => tools ?? resources ?? resourceTemplates ?? prompts)) {
        assert.ok(items.length > 0);
        assert.equal(new Set(items.map(({ uri, name }) => uri ?? name)).size, items.length);
      }
    }
    const cursors = (await received(events, "resources/list")).map(({ params }) => typeof params.cursor);
    assert.deepEqual(cursors, ["undefined", "string"]);
    // a tool host may connect to a room at any time, so there its tools are not kept
    const walks = process.env.PROBE_BALANCER ? 2 : 1;
    assert.equal((await received(events, "tools/list")).filter(({ params }) => params.cursor === undefined).length, walks);
  }));

test("every tool that answers by itself gives what its output schema promises", () =>
  connected(async (client) => {
    await client.listTools();
    const expected = [
      ["simple_tool", { delayMs: 20 }, { message: "Completed after 20ms" }],
      ["sync_with_progress", { itemCount: 3, delayPerItemMs: 10 }, { processedItems: 3 }],
      ["progress", { steps: 2, step_ms: 5 }, { steps: 2, notified: false, done: true }],
    ];
    for (const [name, args, structured] of expected) {
      const result = await call(client, name, args);
      assert.deepEqual([result.structuredContent, JSON.parse(result.content[0].text)], [structured, structured], name);
    }
  }));

test("every kind of content arrives", () =>
  connected(async (client) => {
    const expected = [
      ["test_image_content", {}, ["image"]],
      ["test_audio_content", {}, ["audio"]],
      ["test_embedded_resource", {}, ["resource"]],
      ["test_multiple_content_types", {}, ["text", "image", "resource"]],
      ["long_output", { blocks: 2, chars: 65536 }, ["text", "text"]],
    ];
    for (const [name, args, kinds] of expected) {
      const result = await call(client, name, args);
      assert.deepEqual([result.isError ?? false, ...result.content.map(({ type }) => type)], [false, ...kinds], name);
    }
    assert.equal((await call(client, "test_error_handling")).isError, true);
  }));

test("resources are read, prompts filled in and arguments completed", () =>
  connected(async (client) => {
    const { contents } = await client.readResource({ uri: "test://template/42/data" });
    assert.equal(JSON.parse(contents[0].text).id, "42");
    const filled = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } });
    assert.match(filled.messages[0].content.text, /arg1='a', arg2='b'/);
    const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
    const { completion } = await client.complete({ ref, argument: { name: "arg1", value: "test" } });
    assert.deepEqual(completion.values, ["testValue1", "testing"]);
  }));

// 2026-07-28 basic/transports/streamable-http, Custom Headers
test("a client that has not listed a tool learns its headers from the refusal", () =>
  connected(async (client) => {
    const events = await watch();
    const args = { region: "us-east", priority: 3, dry_run: true };
    assert.deepEqual((await call(client, "routed_tool", args)).structuredContent, args);
    const heads = (await events("http.request")).map(({ headers }) => Object.fromEntries(headers));
    const calls = heads.filter((head) => head["mcp-method"] === "tools/call");
    const mirrored = calls.map((head) => ["region", "priority", "dry-run"].map((name) => head[`mcp-param-${name}`]));
    assert.deepEqual(mirrored, [[undefined, undefined, undefined], ["us-east", "3", "true"]]);
  }));

// --- errors

// The SDK reads the JSON-RPC error in the body of a 400, but not in that of a 404: there it shows the body as text.
test("an unknown method is 404, of which the client makes an HTTP error with our body", () =>
  connected(async (client) => {
    await assert.rejects(client.request({ method: "probe/unknown" }, ANYTHING), (error) => {
      assert.equal(error.data.status, 404);
      assert.equal(JSON.parse(error.data.text).error.code, -32601);
      return true;
    });
  }));

test("a missing capability is 400 and names it", () =>
  connected(
    (client) => assert.rejects(call(client, "sampling_demo"), { code: -32021, data: { requiredCapabilities: { sampling: {} } } }),
    { capabilities: {} },
  ));

test("what does not exist is invalid params", () =>
  connected(async (client) => {
    await assert.rejects(call(client, "no_such_tool"), { code: -32602 });
    await assert.rejects(client.getPrompt({ name: "no_such_prompt" }), { code: -32602 });
    await assert.rejects(client.readResource({ uri: "test://nothing" }), { code: -32602, data: { uri: "test://nothing" } });
  }));

// --- progress, log messages, cancellation

test("progress arrives in order, one report per step, before the result", () =>
  connected(async (client) => {
    const seen = [];
    const result = await call(client, "progress", { steps: 6, step_ms: 20 }, { onprogress: (at) => seen.push(at) });
    assert.deepEqual(seen, range(6).map((step) => ({ progress: step, total: 6, message: `step ${step}/6` })));
    assert.deepEqual(result.structuredContent, { steps: 6, notified: true, done: true });
  }));

test("only the log messages that the request asks for are sent", () =>
  connected(async (client) => {
    const logged = [];
    client.setNotificationHandler("notifications/message", ({ params }) => void logged.push(params.level));
    await call(client, "log_levels");
    assert.deepEqual(logged, []);
    await call(client, "log_levels", {}, {}, { _meta: { [`${PREFIX}logLevel`]: "critical" } });
    assert.deepEqual(logged, ["critical", "alert", "emergency"]);
  }));

// 2026-07-28 basic/patterns/cancellation: "Closing the SSE response stream is the cancellation signal."
test("aborting a call mid-way closes its stream and so stops its work", () =>
  connected(async (client) => {
    const events = await watch();
    const abort = new AbortController();
    const onprogress = ({ progress }) => progress === 3 && abort.abort("seen enough");
    await assert.rejects(call(client, "progress", { steps: 81, step_ms: 50 }, { onprogress, signal: abort.signal }), /seen enough/);
    const [record] = await settledRecords(({ arguments: given }) => given.steps === 81);
    assert.deepEqual(
      [record.outcome, record.cancelled_by, record.answered, record.done],
      ["disconnected", "disconnect", false, false],
    );
    assert.ok(record.steps_done >= 3 && record.steps_done < 81);
    assert.deepEqual((await events("call.settled")).map(({ sent_after_cancel }) => sent_after_cancel), [0]);
    assert.deepEqual(await received(events, "notifications/cancelled"), []);
    assert.ok(await call(client, "simple_tool"));
  }));

test("aborting a call before anything was sent, or letting it time out, stops its work as well", () =>
  connected(async (client) => {
    const events = await watch();
    const abort = new AbortController();
    const aborted = assert.rejects(call(client, "simple_tool", { delayMs: 4001 }, { signal: abort.signal }), /enough/);
    await until(async () => (await events("call.started")).length);
    abort.abort("enough");
    await aborted;
    await assert.rejects(call(client, "simple_tool", { delayMs: 4002 }, { timeout: 300 }), { code: "REQUEST_TIMEOUT" });
    for (const delayMs of [4001, 4002]) {
      const [record] = await settledRecords(({ arguments: given }) => given.delayMs === delayMs);
      assert.deepEqual([record.outcome, record.answered, record.emitted], ["disconnected", false, 0]);
    }
  }));

// --- multi-round-trip requests

// 2026-07-28 basic/patterns/mrtr: the client "MUST echo back the exact value of that field when retrying"
async function roundsOf(method, use) {
  const events = await watch();
  await use();
  const requests = await received(events, method);
  const emitted = (await events("message.emitted")).map(({ message }) => message.result?.requestState).filter(Boolean);
  assert.deepEqual(requests.map(({ params }) => params.requestState), [undefined, ...emitted]);
  assert.equal(new Set(requests.map(({ id }) => id)).size, requests.length);
  return requests.length;
}

test("a tool that asks is called again with the answers and the state as it was given", () =>
  connected(
    async (client) => {
      const expected = [
        ["elicitation", 2, /Hello, Ada!/],
        ["sampling", 2, /LLM response: old pond/],
        ["list_roots", 2, /file:\/\/\/tree/],
        ["request_state", 2, /state-ok/],
        ["multiple_inputs", 2, /old pond/],
        ["multi_round", 3, /Second answer/],
      ];
      for (const [kind, rounds, words] of expected) {
        const done = await roundsOf("tools/call", async () => {
          const result = await call(client, `test_input_required_result_${kind}`);
          assert.match(JSON.stringify(result.content), words);
        });
        assert.equal(done, rounds, kind);
      }
    },
    { person: new Person(accepts({ name: "Ada" })) },
  ));

test("the tool learns whether a form was declined or dismissed", async () => {
  for (const action of ["decline", "cancel"]) {
    const person = new Person({ "elicitation/create": { action } });
    const result = await connected((client) => call(client, "test_elicitation", { message: "Who are you?" }), { person });
    assert.match(result.content[0].text, new RegExp(action));
    assert.deepEqual(person.asked.map(({ message }) => message), ["Who are you?"]);
  }
});

test("prompts and resources that ask are asked for again", async () => {
  await connected(
    async (client) => {
      const rounds = await roundsOf("prompts/get", async () => {
        const { messages } = await client.getPrompt({ name: "test_input_required_result_prompt" });
        assert.match(messages[0].content.text, /the sea/);
      });
      assert.equal(rounds, 2);
    },
    { person: new Person(accepts({ context: "the sea" })) },
  );
  await connected(
    async (client) => {
      const rounds = await roundsOf("resources/read", async () => {
        const { contents } = await client.readResource({ uri: "probe://greeting" });
        assert.equal(contents[0].text, "Hello, Ada!");
      });
      assert.equal(rounds, 2);
    },
    { person: new Person(accepts({ name: "Ada" })) },
  );
});

test("a handler that refuses ends the call, and one round of patience ends it before the second", async () => {
  const events = await watch();
  const refuses = () => {
    throw new Error("User rejected sampling request");
  };
  await connected((client) => assert.rejects(call(client, "sampling_demo"), /User rejected sampling request/), {
    person: new Person({ "sampling/createMessage": refuses }),
  });
  assert.equal((await received(events, "tools/call")).length, 1);
  await connected((client) => assert.rejects(call(client, "test_input_required_result_multi_round"), { code: "INPUT_REQUIRED_ROUNDS_EXCEEDED" }), {
    person: new Person(accepts({ name: "Ada" })),
    inputRequired: { maxRounds: 1 },
  });
  assert.equal((await received(events, "tools/call")).length, 3);
});

test("a client that drives the rounds itself may not change the state", () =>
  connected(async (client) => {
    const name = "test_input_required_result_tampered_state";
    const asked = await client.callTool({ name }, { allowInputRequired: true });
    assert.equal(asked.resultType, "input_required");
    const inputResponses = { confirm: { action: "accept", content: { ok: true } } };
    const end = asked.requestState.endsWith("AA") ? "BB" : "AA";
    const forged = asked.requestState.slice(0, -2) + end;
    await assert.rejects(client.callTool({ name, inputResponses, requestState: forged }), { code: -32602 });
    const result = await client.callTool({ name, inputResponses, requestState: asked.requestState });
    assert.match(result.content[0].text, /state-ok/);
  }));

// The SDK mixes its own reports, one per round and without a total, into those of the server.
test("a call that asks on the way reports its progress in both rounds", async () => {
  const seen = [];
  const onprogress = ({ progress, total }) => void (total === undefined || seen.push([progress, total]));
  await connected(
    async (client) => {
      const result = await call(client, "test_streaming_elicitation", {}, { onprogress });
      assert.equal(result.content[0].text, "Count: 3");
    },
    { person: new Person(accepts({ count: 3 })) },
  );
  assert.deepEqual(seen, [[1, 2], [1, 2], [2, 2]]);
});

// --- subscriptions

// The SDK closes the stream, which is the cancellation, and sends notifications/cancelled as well: on HTTP it has no
// effect, so the server answers 202 and records it as a misuse.
test("a subscription tells of what was agreed to until it is closed", () =>
  connected(async (client) => {
    const events = await watch();
    const updated = new Promise((resolve) => client.setNotificationHandler("notifications/resources/updated", resolve));
    const changed = new Promise((resolve) => client.setNotificationHandler("notifications/tools/list_changed", resolve));
    client.setNotificationHandler("notifications/prompts/list_changed", () => assert.fail("nobody asked for this"));
    const filter = { toolsListChanged: true, resourceSubscriptions: [WATCHED, "test://nothing"] };
    const subscription = await client.listen(filter);
    assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [WATCHED] });
    await call(client, "announce_list_change", { list: "prompts" });
    await call(client, "announce_list_change", { list: "tools" });
    assert.equal((await updated).params.uri, WATCHED);
    await changed;
    await subscription.close();
    assert.equal(await subscription.closed, "local");
    const [{ call: listening }] = (await events("call.started")).filter(({ method }) => method === "subscriptions/listen");
    const ended = await until(async () => (await events("call.settled")).find((event) => event.call === listening));
    assert.deepEqual([ended.outcome, ended.cancelled_by, ended.sent_after_cancel], ["disconnected", "disconnect", 0]);
    const [misuse] = await until(async () => {
      const found = await events("client.misuse");
      return found.length > 0 && found;
    });
    assert.equal(misuse.what, "notifications/cancelled over HTTP");
  }));

test("a client that wants to know of changes subscribes by itself and lists again", () => {
  let told;
  const changed = new Promise((resolve) => (told = resolve));
  return connected(
    async (client) => {
      assert.deepEqual(client.autoOpenedSubscription.honoredFilter, { toolsListChanged: true });
      await client.listTools();
      const events = await watch();
      await call(client, "announce_list_change", { list: "tools" });
      const tools = await changed;
      assert.ok(tools.some(({ name }) => name === "simple_tool"));
      assert.ok((await received(events, "tools/list")).length > 0);
    },
    { listChanged: { tools: { onChanged: (error, tools) => told(error ?? tools) } } },
  );
});

test("a legacy client cannot listen", () =>
  connected((client) => assert.rejects(client.listen({ toolsListChanged: true }), { code: "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION" }), { mode: "legacy" }));

// 2026-07-28 basic/patterns/subscriptions, Graceful Closure: notifications/cancelled before the result would make it "remote".
test("a server that stops ends its subscriptions", () =>
  served((url, stop) =>
    connected(
      async (client, transport) => {
        const heard = [];
        const { onmessage } = transport;
        transport.onmessage = (message) => (heard.push(message.method), onmessage(message));
        const subscription = await client.listen({ toolsListChanged: true });
        const gone = stop();
        assert.equal(await subscription.closed, "graceful");
        assert.deepEqual(heard.filter((method) => method), ["notifications/subscriptions/acknowledged"]);
        assert.equal(await gone, 0);
      },
      { url },
    ),
  ));

// --- the tasks extension, which the SDK does not know: it passes on what it is given for tasks/*, but takes no task for
// the result of tools/call

const tasks = (client, method, taskId, params = {}) => client.request({ method: `tasks/${method}`, params: { taskId, ...params } }, ANYTHING);
const ended = (client, taskId) =>
  until(async () => {
    const task = await tasks(client, "get", taskId);
    return ["completed", "failed", "cancelled", "input_required"].includes(task.status) && task;
  });

test("a client that declares the tasks extension without knowing it is given a task and refuses it", () =>
  connected(
    async (client) => {
      await assert.rejects(call(client, "pure_task", { durationMs: 1000 }), { code: "UNSUPPORTED_RESULT_TYPE", data: { resultType: "task", method: "tools/call" } });
      const [record] = await settledRecords(({ tool, client_version }) => tool === "pure_task" && client_version === "2.4.0");
      assert.deepEqual([record.outcome, record.era], ["completed", "modern"]);
    },
    { capabilities: WITH_TASKS },
  ));

test("a tool that is only a task refuses a client without the extension", () =>
  connected((client) =>
    assert.rejects(call(client, "pure_task"), { code: -32021, data: { requiredCapabilities: { extensions: { [`${PREFIX}tasks`]: {} } } } }),
  ));

test("a task is polled to its result, its error, or its cancellation", () =>
  connected(
    async (client) => {
      const begun = await Promise.all([
        rawCall("task_with_progress", { itemCount: 4, delayPerItemMs: 10 }),
        rawCall("failing_task", { failAfterMs: 1000, errorCode: "validation" }),
        rawCall("cancellable_task", { durationMs: 10_000 }),
      ]);
      assert.deepEqual(begun.map(({ resultType, status }) => [resultType, status]), Array(3).fill(["task", "working"]));
      await tasks(client, "cancel", begun[2].taskId);
      const [completed, failed, cancelled] = await Promise.all(begun.map(({ taskId }) => ended(client, taskId)));
      assert.deepEqual([completed.status, completed.result.structuredContent], ["completed", { processedItems: 4 }]);
      assert.deepEqual([failed.status, failed.error.code, failed.error.data], ["failed", -32602, { code: "validation" }]);
      assert.equal(cancelled.status, "cancelled");
      const [record] = await settledRecords(({ task }) => task === begun[2].taskId);
      assert.deepEqual([record.outcome, record.cancelled_by, record.done], ["cancelled", "tasks_cancel", false]);
      await assert.rejects(tasks(client, "get", "no-such-task"), { code: -32602 });
    },
    { capabilities: WITH_TASKS },
  ));

test("a task that asks goes on with the answer, and a subscription tells each of its statuses", () =>
  connected(
    async (client) => {
      const { taskId } = await rawCall("pausable_task", { itemCount: 2, pauseAfterItem: 1 });
      const told = [];
      client.setNotificationHandler("notifications/tasks", { params: ANYTHING }, (params) => void told.push([params.taskId, params.status]));
      const subscription = await client.listen({ taskIds: [taskId] });
      const asking = await ended(client, taskId);
      assert.equal(asking.status, "input_required");
      const inputResponses = Object.fromEntries(
        Object.keys(asking.inputRequests).map((key) => [key, { action: "accept", content: { continue: true } }]),
      );
      await tasks(client, "update", taskId, { inputResponses });
      const { result } = await ended(client, taskId);
      assert.deepEqual(result.structuredContent, { processedItems: 2, pausedAt: 1 });
      await until(() => told.at(-1)?.[1] === "completed");
      assert.ok(told.every(([id]) => id === taskId));
      assert.ok(told.some(([, status]) => status === "input_required"));
      await subscription.close();
    },
    { capabilities: WITH_TASKS },
  ));
