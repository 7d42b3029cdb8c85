import { expect, test } from "vitest";
import type { Tool } from "~/protocol/schema";
import { curlExample, exampleArguments, messageExample } from "~/views/server/example";

const tool = (more: Partial<Tool> = {}): Tool => ({
  name: "t", title: "T", toolset: "probe", description: "d", exercises: "e", shows: "s", task_support: "forbidden", requires: [], since: "2025-03-26",
  until: "2026-07-28", annotations: null, output_schema: null, docs: "docs/tools.md", input_schema: { type: "object", properties: {} }, ...more,
});

test("an example gives defaults, and something fitting for what is required", () => {
  const properties = { steps: { type: "integer", default: 5 }, free: { type: "string" }, prompt: { type: "string" }, kind: { enum: ["a", "b"] }, n: { type: "integer", minimum: 3 } };
  const schema = { type: "object", properties, required: ["prompt", "kind", "n"] };
  expect(exampleArguments(tool({ input_schema: schema }))).toEqual({ steps: 5, prompt: "example", kind: "a", n: 3 });
});

test("the call declares what the tool needs, mirrors headers and names the toolset that is not served by default", () => {
  const properties = { region: { type: "string", default: "eu", "x-mcp-header": "Region" } };
  const text = curlExample(tool({ requires: ["elicitation.url", "roots"], task_support: "required", input_schema: { properties } }), "http://h/mcp", false);
  expect(text).toContain("'http://h/mcp?tools=probe'");
  expect(text).toContain("-H Mcp-Param-Region:eu ");
  const declared = { elicitation: { url: {} }, roots: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };
  const meta = { "io.modelcontextprotocol/clientCapabilities": declared };
  expect(JSON.parse(text.slice(text.indexOf("-d '") + 4, -1))).toMatchObject({ params: { _meta: meta } });
});

test("a quote does not end the shell's string", () => {
  const properties = { name: { type: "string", default: "it's" } };
  expect(curlExample(tool({ input_schema: { properties } }), "http://h/mcp", true)).toContain(String.raw`it'\''s`);
});

test("a tool that only runs as a task is called as one", () => {
  expect(JSON.parse(messageExample(tool({ task_support: "required" })))).toMatchObject({ params: { task: {} } });
  expect(messageExample(tool())).not.toContain('"task"');
});
