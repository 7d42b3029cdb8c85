import { expect, test } from "vitest";
import { entry } from "~/testing/rows";
import { declaredIn, declaredLines, differs } from "./declared";

const request = (seq: number, capabilities?: object, rpc = "request") =>
  entry(seq, seq, "message.received", { rpc, method: "tools/call", id: seq, message: { params: { _meta: { ...(capabilities && { "io.modelcontextprotocol/clientCapabilities": capabilities }) } } } });

test("capabilities are those of all requests, and say in how many", () => {
  const declared = declaredIn([request(1, { elicitation: { form: {} }, sampling: {} }), request(2, { elicitation: { url: {} } }), request(3, {}), request(4), request(5, { roots: {} }, "notification")], true);
  expect(declared.union).toEqual({ elicitation: { form: {}, url: {} }, sampling: {} });
  expect(declaredLines(declared)).toEqual([
    ["elicitation", "in 2 of 4 requests, with form in 1 of 4 requests, url in 1 of 4 requests"],
    ["sampling", "in 1 of 4 requests"],
  ]);
  expect(differs(declared)).toBe(true);
});

test("requests that agree are one line for each capability", () => {
  const declared = declaredIn([request(1, { elicitation: { form: {} } }), request(2, { elicitation: { form: {} } })], true);
  expect(declaredLines(declared)).toEqual([["elicitation", "in all 2 requests, with form"]]);
  expect(differs(declared)).toBe(false);
  expect(declaredLines(declaredIn([request(1, {})], true))).toEqual([]);
});
