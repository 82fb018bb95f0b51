// @vitest-environment node
import { expect, test } from "vitest";
import { answerOf, checkValues, initialValues, parseSurface, type Surface } from "./parse";

const field = { component: "field.text", id: "why", label: "Why?", required: true };
const form = (...components: unknown[]): unknown => ({ catalogVersion: "0.9.1", surface: { title: "Return", components } });
const seven = form(
  { component: "heading", text: "A return", level: 2 },
  { component: "text", text: "<b>Tell us</b>" },
  field,
  { component: "field.date", id: "when", label: "When?" },
  { component: "field.select", id: "how", label: "How?", required: true, options: [{ value: "post", label: "By post" }] },
  { component: "field.checkbox", id: "box", label: "Box?", default: true },
  { component: "action.button", id: "go", label: "Send", action: { target: "resume" } },
);

const surfaceOf = (payload: unknown): Surface => {
  const parsed = parseSurface(payload);
  if ("refused" in parsed) throw new Error(parsed.refused);
  return parsed.surface;
};

test("all seven components of the catalogue are read", () => {
  expect(surfaceOf(seven).components).toHaveLength(7);
  expect(surfaceOf({ ...(seven as object), reasoning: null }).title).toBe("Return");
});

test.each<[string, unknown, RegExp]>([
  ["an unknown version", { catalogVersion: "0.9.2", surface: { components: [] } }, /^\/catalogVersion: "0\.9\.2"/],
  ["no version", { surface: { components: [] } }, /^\/catalogVersion: missing/],
  ["an unknown component", form({ component: "image", url: "https://x" }), /^\/surface\/components\/0\/component: "image" is not in the catalogue$/],
  ["a component of the prototype", form({ component: "constructor" }), /not in the catalogue/],
  ["an extra member", form({ ...field, href: "x" }), /^\/surface\/components\/0\/href: is not in the catalogue/],
  ["an extra member of the surface", { catalogVersion: "0.9.1", surface: { components: [], style: "x" } }, /^\/surface\/style/],
  ["an extra member of the payload", { ...(seven as object), script: "x" }, /^\/script/],
  ["an extra member of an action", form({ component: "action.button", id: "a", label: "b", action: { target: "resume", url: "x" } }), /action\/url/],
  ["another target", form({ component: "action.button", id: "a", label: "b", action: { target: "https://x" } }), /must be resume or exchange/],
  ["a duplicate id", form(field, { component: "action.button", id: "why", label: "b", action: { target: "resume" } }), /\/1\/id: component 0 has the same id/],
  ["the id action", form({ ...field, id: "action" }), /no component may have the id "action"/],
  ["the id __proto__", form(JSON.parse('{"component":"field.text","id":"__proto__","label":"x"}')), /__proto__/],
  ["no options", form({ component: "field.select", id: "x", label: "x", options: [] }), /at least one option/],
  ["a member of another type", form({ component: "heading", text: 7 }), /\/text: must be a string/],
  ["a level beyond six", form({ component: "heading", text: "x", level: 7 }), /level/],
  ["a missing member", form({ component: "text" }), /\/text: is missing/],
  ["201 components", form(...Array.from({ length: 201 }, () => ({ component: "text", text: "x" }))), /201 components/],
  ["more than 64 kB", form({ component: "text", text: "x".repeat(65_536) }), /limit is 65536/],
  ["no object", "hello", /must be an object/],
  ["nothing", null, /must be an object/],
])("%s is refused with its place", (_, payload, reason) => {
  expect(parseSurface(payload)).toEqual({ refused: expect.stringMatching(reason) });
});

test("200 components are shown", () => {
  expect(surfaceOf(form(...Array.from({ length: 200 }, () => ({ component: "text", text: "x" })))).components).toHaveLength(200);
});

test("values begin empty, in a map without names of its own", () => {
  const values = initialValues(surfaceOf(seven));
  expect(Object.getPrototypeOf(values)).toBeNull();
  expect({ ...values }).toEqual({ why: "", when: "", how: "", box: true });
});

test("what is missing or impossible is said in words, by field", () => {
  const s = surfaceOf(seven);
  expect([...checkValues(s, { why: "", when: "31.1.2026", how: "pigeon", box: true })]).toEqual([
    ["why", "Why?: this is required"],
    ["when", "When?: enter a date such as 2026-01-31"],
    ["how", "How?: choose one of the options"],
  ]);
  expect(checkValues(s, { why: "x", when: "", how: "post", box: false }).size).toBe(0);
});

test("an answer has the filled-in fields and no others", () => {
  expect({ ...answerOf(surfaceOf(seven), { why: "x", when: "", how: "post", box: true }) }).toEqual({ why: "x", how: "post", box: true });
});
