// @vitest-environment jsdom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { explain } from "../explain/explain";
import { Approval } from "./Approval";
import { questionOf } from "./question";

afterEach(cleanup);

const surface = { catalogVersion: "0.9.1", surface: { components: [{ component: "text", text: "Please accept" }] } };
const gate = (artifactData: unknown): ReturnType<typeof questionOf> =>
  questionOf({ kind: "approval", nodeId: "gate", interruptId: "int_1", payload: { kind: "approval", data: { title: "Decide", actions: ["accept", "reject"], artifactData } } });
const part = { blocked: undefined, busy: false, places: new Map<string, string>(), provenance: {}, answer: () => undefined };

test("C7e a surface of untrusted content cannot be accepted, and the page says why", () => {
  render(<Approval {...part} question={gate(surface)} untrusted />);
  expect((screen.getByRole("button", { name: "Accept" }) as HTMLButtonElement).disabled).toBe(true);
  expect((screen.getByRole("button", { name: "Reject" }) as HTMLButtonElement).disabled).toBe(false);
  expect(screen.getByText("untrusted_content_blocks_approval")).toBeTruthy();
  expect(screen.getByText(explain("untrusted_content_blocks_approval")?.meaning ?? "")).toBeTruthy();
});

test("a surface of trusted content can be accepted", () => {
  render(<Approval {...part} question={gate(surface)} />);
  expect((screen.getByRole("button", { name: "Accept" }) as HTMLButtonElement).disabled).toBe(false);
});
