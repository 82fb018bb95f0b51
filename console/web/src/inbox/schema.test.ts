// @vitest-environment node
import { expect, test } from "vitest";
import { controlOf, violations } from "./schema";

test.each<[unknown, object]>([
  [undefined, { form: "text" }],
  [{ enum: ["a", 2] }, { form: "choice", options: ["a", 2] }],
  [{ type: "boolean" }, { form: "yes-no" }],
  [{ type: "integer", minimum: 1 }, { form: "number", whole: true }],
  [{ type: "string", maxLength: 5 }, { form: "text", maxLength: 5 }],
  [{ type: "array", items: { enum: ["a"] } }, { form: "several", options: ["a"] }],
  [{ type: "object" }, { form: "json" }],
  [{ anyOf: [] }, { form: "json" }],
])("the control of %j", (schema, control) => expect(controlOf(schema)).toMatchObject(control));

test.each<[unknown, unknown, [string, string][]]>([
  [undefined, 1, []],
  [{ enum: ["red", "blue"] }, "green", [["", "choose one of red, blue"]]],
  [{ type: "string", maxLength: 3 }, "four", [["", "at most 3 characters, this has 4"]]],
  [{ type: "integer" }, "x", [["", "must be an integer"]]],
  [{ type: "integer", maximum: 3 }, 4, [["", "at most 3"]]],
  [{ type: "array", items: { enum: ["a"] }, minItems: 1 }, [], [["", "choose at least 1"]]],
  [{ type: "object", required: ["n"], properties: { n: { type: "integer" } } }, { n: "x" }, [["/n", "must be an integer"]]],
  [{ type: "object", required: ["n"] }, {}, [["", 'missing member "n"']]],
  [{ type: "string", minLength: 1 }, "", [["", "must not be empty"]]],
])("%j with %j", (schema, value, want) => expect([...violations(schema, value)]).toEqual(want));
