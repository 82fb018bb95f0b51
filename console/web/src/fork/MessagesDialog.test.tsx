// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { MessagesDialog } from "./MessagesDialog";

const fork = vi.fn(() => Promise.resolve("run_2"));
vi.mock("../play/host", () => ({
  useForkNode: () => fork,
  useNodeInput: () => ({ data: { config: { system: "Be brief." }, inputs: {} }, isPending: false, refetch: vi.fn() }),
}));

function showModal(this: HTMLDialogElement): void {
  this.open = true;
}
function close(this: HTMLDialogElement): void {
  this.open = false;
}
beforeAll(() => {
  HTMLDialogElement.prototype.showModal ??= showModal;
  HTMLDialogElement.prototype.close ??= close;
});
afterEach(() => {
  cleanup();
  fork.mockClear();
});

function show(...texts: string[]): void {
  const sent = { messages: texts.map((content) => ({ role: "user", content })) };
  render(<MessagesDialog runId="run_1" nodeId="ask" conversations={[{ call: 1, sent }]} onClose={() => undefined} />);
}

const message = (n: number): HTMLElement => screen.getByLabelText(`Message ${n}`);
const send = (): HTMLButtonElement => screen.getByText<HTMLButtonElement>("Branch with these messages");
const removeAt = (n: number): void => void fireEvent.click(screen.getByLabelText(`Remove message ${n}`));

test("the focus moves to the next message, to the last one, and to the button that adds one", () => {
  show("one", "two", "three");
  removeAt(1);
  expect(document.activeElement).toBe(message(1));
  expect((message(1) as HTMLTextAreaElement).value).toBe("two");
  removeAt(2);
  expect(document.activeElement).toBe(message(1));
  removeAt(1);
  expect(document.activeElement).toBe(screen.getByText("Add a message"));
});

test("a message with a redaction is not sent before it was edited", () => {
  show("The key is [REDACTED:stripe].", "two");
  fireEvent.change(message(2), { target: { value: "other" } });
  expect(send().disabled).toBe(true);
  expect(screen.getByRole("status").textContent).toContain("edit each marked text first");
  fireEvent.submit(send().form as HTMLFormElement);
  expect(fork).not.toHaveBeenCalled();
  fireEvent.change(message(1), { target: { value: "The key is 7." } });
  expect(screen.queryByRole("status")).toBeNull();
  expect(send().disabled).toBe(false);
  fireEvent.submit(send().form as HTMLFormElement);
  expect(fork).toHaveBeenCalledOnce();
});
