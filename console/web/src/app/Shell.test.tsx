// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { configKey } from "../api/session";
import { dateTime } from "../ui/time";
import { setZone } from "../ui/zone";
import { Shell } from "./Shell";

function Page(): ReactNode {
  return (
    <>
      <input aria-label="Comment" />
      <Inner />
    </>
  );
}

const Inner = (): ReactNode => <time>{dateTime("2026-11-27T23:05:09.120Z")}</time>;

vi.mock("./routes", () => ({ navigation: [], routes: [{ path: "/", page: Page }] }));

afterEach(() => {
  cleanup();
  setZone("local");
});

test("another time zone changes the times of a page, and nothing that was typed", () => {
  const client = new QueryClient();
  client.setQueryData(configKey, { basePath: "", mode: "dev", signedIn: true, version: "", links: [], limits: {}, stalledAfterMs: 1 });
  render(
    <QueryClientProvider client={client}>
      <Shell />
    </QueryClientProvider>,
  );
  const comment = screen.getByLabelText<HTMLInputElement>("Comment");
  fireEvent.change(comment, { target: { value: "half a sentence" } });
  fireEvent.change(screen.getByLabelText("Time zone"), { target: { value: "utc" } });
  expect(screen.getByText("27 Nov 2026, 23:05:09 UTC")).toBeTruthy();
  expect(screen.getByLabelText("Comment")).toBe(comment);
  expect(comment.value).toBe("half a sentence");
});
