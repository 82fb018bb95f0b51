// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen, within } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { configKey } from "../../api/session";
import { setZone } from "../../ui/zone";
import SystemPage from "./SystemPage";
import WebhooksPage from "./WebhooksPage";

beforeEach(() => setZone("utc"));
afterEach(() => {
  cleanup();
  setZone("local");
  vi.unstubAllGlobals();
});

/** Shows a page of a host that answers from these bodies by path; the others are 503. */
function show(page: ReactNode, bodies: { [path: string]: object }): QueryClient {
  vi.stubGlobal("fetch", async (request: Request | string) => {
    const { pathname } = new URL(request instanceof Request ? request.url : request, location.href);
    const found = bodies[pathname];
    return new Response(JSON.stringify(found ?? { error: "unavailable", message: "no" }), { status: found ? 200 : 503, headers: { "Content-Type": "application/json" } });
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(configKey, { basePath: "", mode: "dev", signedIn: true, version: "", links: [], limits: {}, stalledAfterMs: 1, session: { tenant: "t", keyId: "k", scopes: ["webhooks:manage", "system:read"] } });
  render(<QueryClientProvider client={client}>{page}</QueryClientProvider>);
  return client;
}

const hook = (id: string, more: object = {}): object => ({
  webhookId: id, url: `https://${id}.example/`, status: "active", events: ["run.failed"], tags: [], consecutiveFailures: 0, recentFailures: 0,
  droppedEvents: 0, createdAt: "2026-11-26T10:00:00.000Z", secretFingerprint: "01234567", ...more,
});

test("a webhook shows the events that were dropped, and the list that it is cut", async () => {
  const dropped = { droppedEvents: 1234, firstDroppedAt: "2026-11-26T11:00:00.000Z", lastDroppedAt: "2026-11-26T12:30:00.000Z" };
  show(<WebhooksPage />, { "/v1/webhooks": { webhooks: [hook("a", dropped), hook("b")], nextCursor: "more" } });
  const table = within(await screen.findByRole("table", { name: "Webhooks" }));
  expect(table.getByText("1,234 events dropped, last 26 Nov 2026, 12:30:00 UTC").className).toBe("status ask");
  expect(table.getAllByText(/dropped/)).toHaveLength(1);
  expect(within(screen.getByRole("region", { name: /Deliveries to/ })).getByText(/first 26 Nov 2026, 11:00:00 UTC/)).toBeTruthy();
  expect(screen.getByText("Only the first 2 webhooks are shown.")).toBeTruthy();
});

test("figures of a host that does not respond have their time", async () => {
  const system = { now: "2026-11-26T12:30:00.000Z", problems: [], dispatchers: [], providers: [], queue: { waiting: 2, taken: 1, limited: 0 } };
  const bodies: { [path: string]: object } = { "/v1/system": system };
  const client = show(<SystemPage />, bodies);
  const waiting = (await screen.findByText("Runs waiting for a dispatcher")).nextElementSibling;
  expect([waiting?.textContent, waiting?.className]).toEqual(["2", ""]);
  delete bodies["/v1/system"];
  await client.refetchQueries({ queryKey: ["system"] });
  expect(await screen.findByText(/^The host does not respond\. These figures are from .*12:30/)).toBeTruthy();
});
