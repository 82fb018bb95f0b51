// @vitest-environment node
import { expect, test } from "vitest";
import { assetOf, bytesOf, inBytes, isPicture, isSound } from "./asset";

const origin = "https://waybill.example";
const source = (payload: Record<string, string>): object => assetOf(payload, undefined, origin).source;

test.each([
  ["https://waybill.example/assets/t0ken", { load: "https://waybill.example/assets/t0ken" }],
  ["/assets/t0ken", { load: "https://waybill.example/assets/t0ken" }],
  ["https://evil.example/pixel.png", { foreign: "https://evil.example/pixel.png" }],
  ["//evil.example/pixel.png", { foreign: "//evil.example/pixel.png" }],
  ["http://waybill.example/a.png", { foreign: "http://waybill.example/a.png" }],
  ["https://waybill.example@evil.example/", { foreign: "https://waybill.example@evil.example/" }],
  ["https://user@waybill.example/", { foreign: "https://user@waybill.example/" }],
  ["javascript:alert(1)", { foreign: "javascript:alert(1)" }],
  ["data:text/html,x", { foreign: "data:text/html,x" }],
])("the URL %s is loaded only if this host serves it", (url, want) => expect(source({ url })).toEqual(want));

test("bytes within the payload come before any URL", () => {
  expect(source({ base64: "aGk=", url: "https://evil.example/" })).toEqual({ bytes: "aGk=" });
  expect(source({})).toEqual({ missing: true });
  expect(bytesOf("aGk=")).toEqual(new Uint8Array([104, 105]));
  expect(bytesOf("***")).toBeUndefined();
});

test("a description comes from the payload, then from the hint, and is never made up", () => {
  expect(assetOf({ alt: "a lamp" }, { alt: "hint" }, origin).alt).toBe("a lamp");
  expect(assetOf({ alt: "" }, { alt: "hint" }, origin).alt).toBe("hint");
  expect(assetOf({}, undefined, origin).alt).toBeUndefined();
});

test("a title comes from the hint, and names a file without a name", () => {
  expect(assetOf({}, { title: "Lamp" }, origin)).toMatchObject({ title: "Lamp", name: "Lamp" });
  expect(assetOf({ name: "a.pdf" }, { title: "Lamp" }, origin)).toMatchObject({ title: "Lamp", name: "a.pdf" });
  expect(assetOf({}, { title: "" }, origin).title).toBeUndefined();
});

test("only pictures that run nothing are drawn", () => {
  expect(isPicture("image/png")).toBe(true);
  expect(isPicture("image/svg+xml")).toBe(false);
  expect(isSound("audio/mpeg")).toBe(true);
  expect(isSound("text/html")).toBe(false);
});

test("sizes are for people", () => expect([0, 999, 1000, 262_144, 5_000_000].map(inBytes)).toEqual(["0 bytes", "999 bytes", "1.0 kB", "262 kB", "5.0 MB"]));
