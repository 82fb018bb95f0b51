// @vitest-environment jsdom
import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/errors";
import { snapshotAt } from "./snapshotAt";

afterEach(() => vi.unstubAllGlobals());

/** A host that streams these chunks; with `open`, it then stays silent. */
function host(pieces: string[], { status = 200, open = false } = {}) {
  const asked = vi.fn(async (_url: string, _init: RequestInit) => {
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        for (const piece of pieces) stream.enqueue(new TextEncoder().encode(piece));
        if (!open) stream.close();
      },
    });
    return new Response(body, { status });
  });
  vi.stubGlobal("fetch", asked);
  return asked;
}

const never = new AbortController().signal;

test("the first state of a stream that goes on from an event is the state as of it, and the stream is let go of", async () => {
  const asked = host([": hello\n\nid: 3\nevent: state.snap", 'shot\ndata: {"runId":"r","status":"running"}\n\n', 'id: 4\nevent: state.snapshot\ndata: {"status":"later"}\n\n'], { open: true });
  expect(await snapshotAt("r", 3, never)).toEqual({ runId: "r", status: "running" });
  const [url, init] = asked.mock.calls[0] ?? [];
  expect(url).toMatch(/\/v1\/runs\/r\/events\?streamMode=values$/);
  expect(new Headers(init?.headers).get("Last-Event-ID")).toBe("3");
  expect(init?.signal?.aborted).toBe(true);
});

test("the state as of another event is not taken for it", async () => {
  host(['id: 4\nevent: state.snapshot\ndata: {"runId":"r"}\n\n']);
  await expect(snapshotAt("r", 3, never)).rejects.toThrow("does not provide the state as of event 3");
});

test("a host without streams of states says so", async () => {
  host(['{"error":"unsupported_stream_mode","message":"none"}'], { status: 400 });
  const refused = snapshotAt("r", 3, never);
  await expect(refused).rejects.toBeInstanceOf(ApiError);
  await expect(refused).rejects.toMatchObject({ code: "unsupported_stream_mode" });
});

test("the state as of the last event of an ended run is that of the run", async () => {
  const asked = vi.fn(async (url: string) => (url.includes("/events") ? new Response(null, { status: 204 }) : new Response('{"runId":"r","status":"completed"}')));
  vi.stubGlobal("fetch", asked);
  expect(await snapshotAt("r", 3, never)).toEqual({ runId: "r", status: "completed" });
  expect(asked.mock.calls[1]?.[0]).toMatch(/\/v1\/runs\/r$/);
});
