// @vitest-environment node
import { expect, test } from "vitest";
import { families, inWords } from "./families";

test("families are read from the root of the document, in the order people ask for them", () => {
  const found = families({
    protocolVersion: "1.1",
    supportedEnvelopes: ["error"],
    webhooks: { supported: true },
    "x-own": { a: 1 },
    limits: { envelopesPerTurn: 5 },
    replay: { supported: false },
  });
  expect(found.map((f) => [f.name, f.supported])).toEqual([
    ["host", undefined],
    ["limits", undefined],
    ["replay", false],
    ["webhooks", true],
    ["x-own", undefined],
  ]);
  expect(found[0]?.value).toEqual({ protocolVersion: "1.1" });
});

test.each([
  ["maxRunDurationMs", "max run duration ms"],
  ["checkpointPublicKey", "checkpoint public key"],
  ["supported", "supported"],
])("%s is %s", (name, words) => expect(inWords(name)).toBe(words));
