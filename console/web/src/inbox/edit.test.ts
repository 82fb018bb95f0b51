import { describe, expect, test } from "vitest";
import { parseJson, stringifyJson, type Json } from "../api/json";
import { collect, entriesOf, type Entries } from "../workflows/form";
import { asForm, editSchema } from "./edit";

function edited(declared: unknown, value: Json, change: (entries: Entries) => Entries): { text: string; wrong: string[] } {
  const { schema, wrapped } = asForm(editSchema(declared, value), "content");
  const entries = change(entriesOf(schema, wrapped ? { content: value } : value, ""));
  const got = collect(schema, entries, "", "");
  return { text: stringifyJson(wrapped ? (got.value as { content: Json } | undefined)?.content : got.value), wrong: [...got.wrong.keys()] };
}
const same = (entries: Entries): Entries => entries;

describe("a value that is not changed stays as it is", () => {
  test.each([
    '{"to":"Ms Ito","amount":129.00,"gift":false,"note":"","none":null}',
    '{"lines":[{"sku":"a","n":1},{"sku":"b","n":9007199254740993,"extra":true}],"tags":["x",""]}',
    '{"deep":{"a":{"b":{"c":{"d":[1,"x",null]}}}},"mixed":[1,"a"],"empty":[],"nothing":{}}',
    '"only a text"',
    '""',
    "12.50",
    "true",
    "null",
    "[]",
    '[{"a":1},{"b":"2"}]',
    '{"a/b":{"c~d":"e"}}',
  ])("%s", (text) => {
    expect(edited(undefined, parseJson(text), same)).toEqual({ text, wrong: [] });
  });
});

test("a text may be emptied, a number may not", () => {
  const value = { name: "x", n: 1 };
  expect(edited(undefined, value, (e) => ({ ...e, "/name": "" }))).toEqual({ text: '{"name":"","n":1}', wrong: [] });
  expect(edited(undefined, value, (e) => ({ ...e, "/n": "" })).wrong).toEqual(["/n"]);
});

test("what is declared wins, and what is not declared is kept", () => {
  const declared = { properties: { colour: { enum: ["red", "blue"] }, size: { type: "integer" } }, required: ["size"] };
  const { schema } = asForm(editSchema(declared, { colour: "red", more: "m" }), "content");
  expect(schema.properties).toMatchObject({ colour: { enum: ["red", "blue"] }, size: { type: "integer" }, more: { type: "string" } });
  expect(edited(declared, { colour: "red", more: "m" }, (e) => ({ ...e, "/colour": "blue", "/size": "3" })).text).toBe('{"colour":"blue","size":3,"more":"m"}');
  expect(edited(declared, { colour: "red" }, same).wrong).toEqual(["/size"]);
});

test("a fixed value is the only choice, and a reference is followed", () => {
  const declared = { $defs: { order: { const: "4711" } }, type: "object", properties: { order: { $ref: "#/$defs/order" } }, required: ["order"] };
  expect(edited(declared, { order: "4711" }, same)).toEqual({ text: '{"order":"4711"}', wrong: [] });
  expect(editSchema(declared, undefined).properties).toMatchObject({ order: { enum: ["4711"] } });
});
