import { expect, test } from "vitest";
import { ExactNumber, stringifyJson, type Json } from "../api/json";
import { collect, entriesOf, inputSchema, placed, resolved, shapeOf } from "./form";

const object = (properties: object, required: string[] = []) => ({ type: "object", properties, required });

test("what was entered is the value, with numbers as written, and empty fields are left out", () => {
  const schema = object({ n: { type: "number" }, i: { type: "integer" }, s: { type: "string" }, b: { type: "boolean" }, o: { type: "object" }, none: { type: "string" } }, ["n"]);
  const { value, wrong } = collect(schema, { "/n": "9007199254740993", "/i": "-3", "/s": " x ", "/b": "false", "/o": '{"a": 1.10}' }, "", "/inputs");
  expect(stringifyJson(value)).toBe('{"n":9007199254740993,"i":-3,"s":" x ","b":false,"o":{"a":1.10}}');
  expect(wrong.size).toBe(0);
});

test("what is missing or no value of its type is said at its field", () => {
  const schema = object({ n: { type: "number" }, i: { type: "integer" }, o: { type: "object" }, l: { type: "array" }, s: { type: "string" } }, ["s"]);
  const { wrong } = collect(schema, { "/n": "0x10", "/i": "1.5", "/o": "[]", "/l": "{", "/s": "" }, "", "/inputs");
  expect([...wrong.keys()]).toEqual(["/n", "/i", "/o", "/l", "/s"]);
  expect(wrong.get("/l")).toMatch(/^enter valid JSON/);
});

test("an optional object is absent until something is entered, then its required members are", () => {
  const schema = object({ address: object({ street: { type: "string" }, zip: { type: "string" } }, ["zip"]) });
  expect(collect(schema, {}, "", "")).toMatchObject({ value: {}, wrong: new Map() });
  expect([...collect(schema, { "/address/street": "x" }, "", "").wrong.keys()]).toEqual(["/address/zip"]);
});

test("a value gives the entries that give it back", () => {
  const schema = object({
    items: { type: "array", items: object({ sku: { type: "string" }, n: { type: "integer" } }, ["sku"]) },
    tags: { type: "array", items: { enum: ["a", "b", 3] } },
    level: { enum: [1, "high"] },
    big: { type: "number" },
    deep: { type: "object" },
    "a/b~c": { type: "string" },
  });
  const value: Json = { items: [{ sku: "x", n: 1 }, { sku: "y" }], tags: ["a", 3], level: 1, big: new ExactNumber("1.10"), deep: { x: [null] }, "a/b~c": "t" };
  expect(stringifyJson(collect(schema, entriesOf(schema, value, ""), "", "").value)).toBe(stringifyJson(value));
});

test("the variables of a workflow are its inputs; its input schema adds enums, examples and parts", () => {
  const { schema, sensitive, examples } = inputSchema({
    variables: [
      { name: "mail", type: "string", required: true, description: "The mail" },
      { name: "tone", type: "string", defaultValue: "warm" },
      { name: "n", type: "number" },
      { name: "key", type: "string", sensitive: true },
    ],
    metadata: { "x-inputSchema": { properties: { tone: { enum: ["warm", "cold"] }, n: { type: "integer", minimum: 1 }, mail: { type: "object" }, ghost: {} }, required: ["n", "tone", "ghost"], examples: [{ mail: "hi" }, 3] } },
  });
  expect(schema.properties).toEqual({
    mail: { description: "The mail", type: "string" },
    tone: { enum: ["warm", "cold"], type: "string", default: "warm" },
    n: { type: "integer", minimum: 1 },
    key: { type: "string" },
  });
  expect(schema.required).toEqual(["mail", "n"]);
  expect([...sensitive]).toEqual(["key"]);
  expect(examples).toEqual([{ mail: "hi" }]);
});

test("references are followed, and one that leads to itself ends", () => {
  const schema = resolved({ properties: { a: { $ref: "#/$defs/node", title: "A" } }, $defs: { node: { type: "object", properties: { child: { $ref: "#/$defs/node" } } } } });
  expect(schema).toEqual({ properties: { a: { type: "object", properties: { child: {} }, title: "A" } } });
});

test("problems of the host are shown at the field that holds their place", () => {
  const form = collect(object({ o: { type: "object" }, list: { type: "array", items: { type: "string" } } }), { "/list": ["item-x"], "/list/item-x": "v", "/o": "{}" }, "", "/inputs");
  expect(placed([{ path: "/inputs/o/a/b", message: "no" }, { path: "/inputs/list/0", message: "too short" }, { path: "/tags/0", message: "too long" }, { path: "", message: "whole" }], form)).toEqual(
    new Map([["/o", ["/a/b: no"]], ["/list/item-x", ["too short"]], ["", ["/tags/0: too long", "whole"]]]),
  );
});

test("a form without fields gives an empty object", () => {
  expect(collect(object({}), {}, "", "/inputs")).toMatchObject({ value: {}, wrong: new Map() });
});

test("values that are deep, or have no declared parts, are JSON", () => {
  expect(shapeOf({ type: "object" }, 1).form).toBe("leaf");
  expect(shapeOf({ type: "array", items: {} }).form).toBe("leaf");
  expect(shapeOf(object({ a: {} }), 4).form).toBe("leaf");
});
