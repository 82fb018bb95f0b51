// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { afterEach, expect, test } from "vitest";
import { Approval } from "../../inbox/Approval";
import { Clarification } from "../../inbox/Clarification";
import { questionOf, type Question } from "../../inbox/question";
import { control } from "./control";

afterEach(cleanup);

const question = (kind: string, data: object): Question => questionOf({ kind, nodeId: "gate", interruptId: "int_1", payload: { kind, data: { title: "Decide", ...data } } });
const part = { blocked: undefined, busy: false, places: new Map<string, string>(), provenance: {}, answer: () => undefined };

function show(data: object): void {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <article className="question">
        <Approval {...part} question={question("approval", data)} />
      </article>
    </QueryClientProvider>,
  );
}

const decision = (name: string): HTMLElement => screen.getByRole("button", { name });

test("with a panel open, the keys find the buttons of the decision", () => {
  show({ actions: ["accept", "reject", "refine", "edit-accept"], artifactData: { to: "Ms Ito" } });
  fireEvent.click(decision("Refine…"));
  expect(decision("Send back for refinement")).toBeTruthy();
  expect(control("accept")).toBe(decision("Accept"));
  expect(control("reject")).toBe(decision("Reject"));
});

test("a closed panel has no control", () => {
  show({ actions: ["accept", "edit-accept"], artifactData: { to: "Ms Ito" } });
  expect(control("edit")).toBeUndefined();
  fireEvent.click(decision("Edit and accept…"));
  expect(control("edit")).toBe(screen.getByLabelText("to"));
  fireEvent.click(decision("Edit and accept…"));
  expect(control("edit")).toBeUndefined();
  expect(control("accept")).toBe(decision("Accept"));
  expect(control("comment")).toBe(screen.getByLabelText("Comment"));
});

test("without Accept, the button that sends is found, but not while it is hidden", () => {
  show({ actions: ["refine", "edit-accept"], artifactData: { to: "Ms Ito" } });
  fireEvent.click(decision("Edit and accept…"));
  fireEvent.click(decision("Refine…"));
  expect(control("accept")).toBe(decision("Send back for refinement"));
  fireEvent.click(decision("Go back"));
  expect(control("accept")).toBeUndefined();
});

test("the comment is found behind the voter, and a field of the content is not a control", () => {
  const artifactData = { catalogVersion: "0.9.1", surface: { components: [{ component: "form", children: [{ component: "text-input", name: "why", label: "Why?" }] }] } };
  show({ actions: ["accept"], approversList: ["ann", "bob"], artifactData });
  expect(control("comment")).toBe(screen.getByLabelText("Comment"));
  expect(control("accept")).toBe(decision("Accept"));
});

test("the first answer is the comment of a clarification", () => {
  render(
    <article className="question">
      <Clarification {...part} question={question("clarification", { questions: [{ id: "why", question: "Why?" }] })} />
    </article>,
  );
  expect(control("comment")).toBe(screen.getByLabelText("Why?"));
  expect(control("accept")?.getAttribute("type")).toBe("submit");
});
