import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Hub, mostStreams, type Port, type HubMessage } from "./hub";

// Streams that stay open until they are aborted.
const opened: { url: string; lastId: string | null; open: boolean; send: (text: string) => void }[] = [];

beforeEach(() => {
  opened.length = 0;
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const encoder = new TextEncoder();
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        const entry = { url, lastId: new Headers(init.headers).get("Last-Event-ID"), open: true, send: (text: string) => controller.enqueue(encoder.encode(text)) };
        opened.push(entry);
        init.signal?.addEventListener("abort", () => {
          entry.open = false;
          controller.error(new Error("aborted"));
        });
      },
    });
    return Promise.resolve(new Response(stream, { status: 200 }));
  });
});
afterEach(() => vi.unstubAllGlobals());

function port(): Port & { messages: HubMessage[] } {
  const messages: HubMessage[] = [];
  return { messages, postMessage: (message) => void messages.push(message) };
}

const stillOpen = (): string[] => opened.filter((s) => s.open).map((s) => s.url);

it("tabs with the same URL share a stream, and a later tab is notified to catch up", async () => {
  const hub = new Hub();
  const [one, two] = [port(), port()];
  hub.handle(one, { do: "open", key: 1, url: "/a", lastId: "7" });
  hub.handle(two, { do: "open", key: 9, url: "/a", lastId: undefined });
  await vi.waitFor(() => expect(opened).toHaveLength(1));
  expect(opened[0]?.lastId).toBe("7");
  expect(two.messages).toContainEqual({ key: 9, joined: true });
  opened[0]?.send("id: 8\nevent: x\ndata: {}\n\n");
  const frames = [{ id: "8", event: "x", data: "{}" }];
  await vi.waitFor(() => expect(two.messages).toContainEqual({ key: 9, frames }));
  expect(one.messages).toContainEqual({ key: 1, frames });
});

it("no more streams are open than a browser can spare, and the newest has one", async () => {
  const hub = new Hub();
  const tab = port();
  for (let key = 0; key < 8; key++) hub.handle(tab, { do: "open", key, url: `/${key}`, lastId: undefined });
  await vi.waitFor(() => expect(stillOpen()).toEqual(["/4", "/5", "/6", "/7"]));
  expect(hub.connected).toBe(mostStreams);
  expect(tab.messages.filter((t) => "state" in t && t.state === "polling").map((t) => t.key)).toEqual([0, 1, 2, 3]);
  hub.handle(tab, { do: "close", key: 7 });
  await vi.waitFor(() => expect(stillOpen().sort()).toEqual(["/3", "/4", "/5", "/6"]));
});

it("a tab that has gone holds no stream", async () => {
  let now = 0;
  const hub = new Hub(() => now);
  hub.handle(port(), { do: "open", key: 1, url: "/a", lastId: undefined });
  const leaving = port();
  hub.handle(leaving, { do: "open", key: 1, url: "/b", lastId: undefined });
  hub.handle(leaving, { do: "bye" });
  await vi.waitFor(() => expect(stillOpen()).toEqual(["/a"]));
  now = 1000;
  hub.sweep(500);
  await vi.waitFor(() => expect(stillOpen()).toEqual([]));
});
