// @vitest-environment node
import { expect, test } from "vitest";
import { ApiError, UnreachableError } from "../../api/errors";
import { capabilities, missingReason } from "./gate";

const document = { modelCapabilities: { supported: true, advertised: ["reasoning", "x-host-acme-dance", 7] } };

test("what the host publishes and what it advertises are combined", () => {
  const details = [
    { id: "reasoning", enforced: true, requiredBy: ["vendor.a"], models: [{ provider: "p", model: "m", ownKey: false }, { provider: "q", model: "n", ownKey: true }, { provider: "p", model: "o", ownKey: false }] },
    { id: "vision-input", enforced: false, requiredBy: [], models: [] },
  ];
  expect(capabilities(document, details)).toEqual([
    { id: "reasoning", advertised: true, details: { enforced: true, requiredBy: ["vendor.a"], by: [{ provider: "p", models: ["m", "o"], ownKey: false }, { provider: "q", models: ["n"], ownKey: true }] } },
    { id: "vision-input", advertised: false, details: { enforced: false, requiredBy: [], by: [] } },
    { id: "x-host-acme-dance", advertised: true, details: undefined },
  ]);
});

test.each([
  ["a host without further details", document, ["reasoning", "x-host-acme-dance"]],
  ["a host that looks at no requirement", { modelCapabilities: { supported: false, advertised: ["reasoning"] } }, []],
  ["a host without the family", {}, []],
  ["no document yet", undefined, []],
])("of %s only what it advertises is shown", (_name, doc, want) => {
  expect(capabilities(doc, undefined)).toEqual(want.map((id) => ({ id, advertised: true, details: undefined })));
});

test.each([
  [new ApiError(404, "not_found", ""), "this host does not publish it"],
  [new ApiError(501, "capability_not_provided", ""), "this host does not publish it"],
  [new ApiError(403, "forbidden", ""), "requires a key with the scope runs:read"],
  [new ApiError(503, "service_unavailable", ""), undefined],
  [new UnreachableError("x"), undefined],
])("explains %s", (error, want) => {
  expect(missingReason(error, "runs:read")).toBe(want);
});
