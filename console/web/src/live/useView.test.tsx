// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RunEvent } from "../api/model";
import { RunLog } from "./runLog";
import { useView, Viewed, viewKey } from "./useView";
import { RecordedLog } from "./useRunLog";

const event = (sequence: number, type: string): RunEvent => ({ eventId: `e${sequence}`, runId: "r", sequence, type, payload: {}, timestamp: "" });

/** Requests of the view, answered by hand. */
let asked: { path: string; query: object; answer: (sequence: number) => Promise<void> }[];

vi.mock("../api/client", () => ({
  body: async (found: Promise<{ data: unknown }>): Promise<unknown> => (await found).data,
  api: {
    GET: (path: string, { params }: { params: { query: object } }) =>
      new Promise((resolve) => {
        const answer = async (sequence: number): Promise<void> => {
          resolve({ data: { runId: "r", sequence } });
          await later(1);
        };
        asked.push({ path, query: params.query, answer });
      }),
  },
}));

beforeEach(() => {
  asked = [];
  vi.useFakeTimers();
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function Page({ log, at }: { log: RunLog; at?: number }): ReactNode {
  return <Viewed query={useView(log, at)}>{(view) => <p>as of {view.sequence}</p>}</Viewed>;
}

const page = (client: QueryClient, log: RunLog, at?: number): ReactNode => (
  <QueryClientProvider client={client}>
    <Page log={log} {...(at === undefined ? {} : { at })} />
  </QueryClientProvider>
);

async function later(ms: number): Promise<void> {
  await act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
}

test("the view is loaded again after new events, one request at a time, and the one before stays", async () => {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const log = new RunLog("r", [event(0, "run.started")]);
  const { rerender } = render(page(client, log));
  const grow = (type: string): void => {
    log.events.push(event(log.events.length, type));
    rerender(page(client, log));
  };
  await later(0);
  expect(asked).toMatchObject([{ path: "/v1/runs/{runId}:view", query: {} }]);
  expect(screen.getByText("Loading…")).toBeTruthy();
  grow("node.started");
  await later(2000);
  expect(asked).toHaveLength(1); // no second one while it is under way
  await asked[0]?.answer(0);
  expect(screen.getByText("as of 0")).toBeTruthy();
  await later(100);
  expect(asked).toHaveLength(1);
  grow("node.completed");
  await later(60); // more events do not postpone it
  expect(asked).toHaveLength(2);
  expect(screen.getByText("as of 0")).toBeTruthy();
  await asked[1]?.answer(2);
  expect(screen.getByText("as of 2")).toBeTruthy();
  await later(10_000);
  expect(asked).toHaveLength(2); // it has all events
  grow("output.chunk");
  await later(900);
  expect(asked).toHaveLength(2); // chunks alone change little
  await later(200);
  expect(asked).toHaveLength(3);
});

test("the view as of an event is loaded once, and the one before stays until then", async () => {
  const client = new QueryClient();
  const log = new RunLog("r", [event(0, "run.started"), event(1, "node.started")]);
  const { rerender } = render(page(client, log));
  await later(0);
  await asked[0]?.answer(1);
  rerender(page(client, log, 0));
  await later(0);
  expect(asked[1]?.query).toEqual({ at: 0 });
  expect(screen.getByText("as of 1")).toBeTruthy();
  await asked[1]?.answer(0);
  expect(screen.getByText("as of 0")).toBeTruthy();
  await later(10_000);
  expect(asked).toHaveLength(2);
});

test("a file's view is not requested, and a file without one says so", async () => {
  const client = new QueryClient();
  const log = new RunLog("r", [event(0, "run.started")]);
  client.setQueryData(viewKey("r"), null);
  render(<RecordedLog value={log}>{page(client, log)}</RecordedLog>);
  await later(10_000);
  expect(screen.getByText(/^This file contains only events/)).toBeTruthy();
  expect(asked).toEqual([]);
});
