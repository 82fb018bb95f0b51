// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { configKey } from "../api/session";
import { reasonWords, type QuarantinedRun } from "./host";
import { QuarantineNote } from "./QuarantineNote";

afterEach(cleanup);

const run: QuarantinedRun = { runId: "run_1", workflowId: "triage", reason: "definition_missing", since: "2026-01-02T03:04:05.000Z", nextCheckAt: "2026-01-02T03:05:05.000Z", checks: 1, tries: 10 };

function show(scopes: string[], reason = run.reason): void {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  client.setQueryData(configKey, { signedIn: true, session: { tenant: "acme", keyId: "k", scopes }, links: [] });
  render(
    <QueryClientProvider client={client}>
      <QuarantineNote run={{ ...run, reason }} />
    </QueryClientProvider>,
  );
}

test("the note shows the reason and the actions that the key allows", () => {
  show(["runs:read", "runs:cancel"]);
  expect(screen.getByText("definition_missing")).toBeTruthy();
  expect(screen.getByText(/workflow definition is missing/)).toBeTruthy();
  expect(screen.getByText(/Handed to a dispatcher 10 times, checked 1 time\./)).toBeTruthy();
  expect(screen.getByRole("button", { name: "Retry now" })).toBeTruthy();
  expect(screen.getByRole("button", { name: "End run…" })).toBeTruthy();
});

test("a run with a damaged log cannot be ended", () => {
  show(["runs:read", "runs:cancel"], "log_damaged");
  expect(screen.getByRole("button", { name: "Retry now" })).toBeTruthy();
  expect(screen.queryByRole("button", { name: "End run…" })).toBeNull();
  expect(screen.getByText(/cannot be ended: nothing can be appended to a damaged log/)).toBeTruthy();
});

test("a key that may only read gets no buttons", () => {
  show(["runs:read"]);
  expect(screen.queryByRole("button")).toBeNull();
  expect(screen.getByText(/scope runs:cancel/)).toBeTruthy();
});

test("an unknown reason is shown as it is", () => {
  expect(reasonWords("constructor")).toBe("constructor");
});
