import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { membersOf, nodeTypesOf, schemasAt, valuesOf } from "./schemaAt";

const schema = JSON.parse(readFileSync(new URL("../../../../schemas/workflow.schema.json", import.meta.url), "utf8")) as object as { [k: string]: unknown };
const names = (document: never, ...path: (string | number)[]): string[] => membersOf(schemasAt(schema, document, path)).map((m) => m.name);

test("the members of a node's config are those of its type", () => {
  const document = { nodes: [{ id: "a", typeId: "core.ai.callPrompt", config: {} }, { id: "b", typeId: "core.delay", config: {} }] } as never;
  expect(names(document)).toContain("variables");
  expect(names(document, "nodes", 0)).toContain("typeId");
  expect(names(document, "nodes", 0, "config")).toContain("prompt");
  expect(names(document, "nodes", 1, "config")).not.toContain("prompt");
});

const port = (type: string) => ({ nodes: [{ inputs: { p: { type } } }] }) as never;

test("the members of a port are those of its kind", () => {
  expect(names(port("connection"), "nodes", 0, "inputs", "p")).toContain("outputKey");
  expect(names(port("variable"), "nodes", 0, "inputs", "p")).toContain("variableName");
  expect(names(port("variable"), "nodes", 0, "inputs", "p")).not.toContain("outputKey");
});

test("values are those that the schema lists, and node types those with a config", () => {
  expect(valuesOf(schemasAt(schema, {}, ["variables", 0, "type"]))).toEqual(["string", "number", "boolean", "object", "array"]);
  expect(valuesOf(schemasAt(schema, {}, ["variables", 0, "required"]))).toEqual([true, false]);
  expect(nodeTypesOf(schema).map((t) => t.name)).toContain("core.approvalGate");
});

test("a place that the schema does not know has no members", () => {
  expect(names({} as never, "ghost", "x")).toEqual([]);
  expect(membersOf(schemasAt({ $ref: "#" }, {}, []))).toEqual([]);
});
