import { expect, test } from "vitest";
import { clientOf } from "./client-name";

test.each([
  [{ label: null, client_name: "agent", client_version: "1.2" }, "agent 1.2"],
  [{ label: "lab", client_name: "agent", client_version: "1.2" }, "lab: agent 1.2"],
  [{ label: null, client_name: "agent", client_version: "" }, "agent"],
  [{ label: null, client_name: "", client_version: "" }, "no name given"],
  [{ label: "lab", client_name: "", client_version: "" }, "lab: no name given"],
])("a client is called by what is known of it", (client, name) => {
  expect(clientOf(client)).toBe(name);
});
