// @vitest-environment jsdom
import { act, renderHook } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { ApiError, UnreachableError } from "../api/errors";
import { useAnswer } from "./useAnswer";

const accept = { action: "accept" };

test.each([
  ["an answer that may have arrived is the same when it is sent again", new UnreachableError("gone"), accept, true],
  ["another answer is another", new UnreachableError("gone"), { action: "reject" }, false],
  ["one that was refused is new when it is sent again", new ApiError(422, "validation_error", "no"), accept, false],
])("C6e %s", async (_, error, second, same) => {
  const send = vi.fn<(value: unknown, key: string) => Promise<unknown>>().mockRejectedValue(error);
  const { result } = renderHook(() => useAnswer({ send }));
  await act(async () => result.current.answer(accept));
  expect(result.current.answering.state).toBe("refused");
  await act(async () => result.current.answer(second));
  expect(send).toHaveBeenCalledTimes(2);
  const [before, after] = send.mock.calls.map(([, key]) => key);
  expect(after === before).toBe(same);
});
