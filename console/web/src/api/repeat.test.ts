// @vitest-environment jsdom
import { expect, test } from "vitest";
import { ApiError, UnreachableError } from "./errors";
import { repeating } from "./repeat";

const fails = (error: Error) => (key: string): Promise<string> => Promise.reject(Object.assign(error, { key }));
const succeeds = (key: string): Promise<string> => Promise.resolve(key);

test.each([
  ["no response", new UnreachableError("gone"), "a", true],
  ["an error of the host", new ApiError(503, "unavailable", "no"), "a", true],
  ["a request that still runs", new ApiError(409, "idempotency_in_flight", "wait"), "a", true],
  ["a refusal", new ApiError(409, "conflict", "no"), "a", false],
  ["another request", new UnreachableError("gone"), "b", false],
])("after %s, the key of the next request", async (_, error, next, same) => {
  const repeat = repeating();
  await expect(repeat("a", fails(error))).rejects.toBe(error);
  const { key } = error as Error & { key?: string };
  expect(key).toMatch(/^console-/);
  expect((await repeat(next, succeeds)) === key).toBe(same);
});

test("after a success, the same request is a new one", async () => {
  const repeat = repeating();
  expect(await repeat("a", succeeds)).not.toBe(await repeat("a", succeeds));
});
