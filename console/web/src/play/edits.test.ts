import { expect, test } from "vitest";
import { entriesOf } from "../workflows/form";
import { configChanges, configSchema, patched, portChanges, portsSchema, schemaOf, templateOf, withConfig } from "./edits";

const config = { prompt: "Sort {{mail}}", model: "small", temperature: 1, stop: ["."] };
const schema = configSchema("core.ai.callPrompt", config, ["error"]);
const entries = entriesOf(schema, config, "");

test("a form that is left as it is changes nothing", () => {
  expect(configChanges(schema, entries, config).changes).toEqual({});
  const ports = { mail: "Broken", order: { id: 7, lines: [{ sku: "a" }] }, note: "", none: null };
  expect(portChanges(portsSchema(ports), entriesOf(portsSchema(ports), ports, ""), ports)).toEqual({ changes: {}, wrong: new Map() });
});

test("changed members are sent, and cleared ones removed", () => {
  const { changes } = configChanges(schema, { ...entries, "/prompt": "Sort: {{mail}}", "/temperature": "", "/envelopeType": "error" }, config);
  expect(changes).toEqual({ prompt: "Sort: {{mail}}", temperature: null, envelopeType: "error" });
  expect(patched(config, changes)).toEqual({ prompt: "Sort: {{mail}}", model: "small", stop: ["."], envelopeType: "error" });
});

test("a value that does not fit is named", () => {
  expect(configChanges(schema, { ...entries, "/maxTokens": "many" }, config).wrong).toEqual(new Map([["/maxTokens", "enter a whole number"]]));
});

test("a text of the node's own replaces a template", () => {
  const templated = { userPromptRef: { templateId: "desk.sort" }, systemPromptRef: "prompt:desk.tone@1.0.0" };
  expect(templateOf(templated, "prompt")).toBe("desk.sort");
  expect(templateOf(templated, "system")).toBe("prompt:desk.tone@1.0.0");
  const form = configSchema("core.ai.callPrompt", templated, []);
  expect(configChanges(form, { "/prompt": "Sort" }, templated).changes).toEqual({ prompt: "Sort", userPromptRef: null });
});

test("values are described by their own shape", () => {
  expect(schemaOf({ a: [{ b: true }], c: [] })).toEqual({
    type: "object",
    properties: { a: { type: "array", items: { type: "object", properties: { b: { type: "boolean" } }, required: ["b"] } }, c: { type: "array" } },
    required: ["a", "c"],
  });
  expect(schemaOf([1, "x"])).toEqual({ type: "array" });
});

test("a definition gets the settings in its node, and keeps the rest", () => {
  const definition = { id: "w", nodes: [{ id: "a", config: { prompt: "x" } }, { id: "b", config: { prompt: "old", seed: 1 } }] };
  expect(withConfig(definition, "b", { prompt: "new", seed: null })).toEqual({ id: "w", nodes: [{ id: "a", config: { prompt: "x" } }, { id: "b", config: { prompt: "new" } }] });
  expect(withConfig(definition, "c", {})).toBeUndefined();
});
