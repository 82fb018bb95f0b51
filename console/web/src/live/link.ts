import workerURL from "./worker?sharedworker&url";
import { Hub, type Ask, type Port, type Tell } from "./hub";
import type { Frame, LiveState } from "./sse";

export type StreamHandlers = {
  onFrames: (frames: Frame[]) => void;
  onState: (state: LiveState) => void;
  /** The stream has closed after so many failures; or this tab has to catch up by itself (-1). */
  onClosed: (failures: number) => void;
  onRefused: (error: { status: number; code: string; message: string }) => void;
};

const open = new Map<number, StreamHandlers>();
let nextKey = 1;
let ask: ((ask: Ask) => void) | undefined;

function hear(tell: Tell): void {
  const handlers = open.get(tell.key);
  if (!handlers) return;
  if ("frames" in tell) handlers.onFrames(tell.frames);
  else if ("state" in tell) handlers.onState(tell.state);
  else if ("refused" in tell) handlers.onRefused(tell.refused);
  else handlers.onClosed("closed" in tell ? tell.closed : -1);
}

type Policy = { createScriptURL: (url: string) => string };
type TrustedTypes = { createPolicy: (name: string, rules: Policy) => Policy };

// Only this one address is ever trusted as a script (require-trusted-types-for 'script').
function trusted(url: string): string {
  const { trustedTypes } = globalThis as unknown as { trustedTypes?: TrustedTypes };
  return trustedTypes?.createPolicy("waybill-worker", { createScriptURL: (u) => u }).createScriptURL(url) ?? url;
}

// Where there are no shared workers, a tab has a hub of its own.
function alone(): (ask: Ask) => void {
  const hub = new Hub();
  const port: Port = { postMessage: (tell) => queueMicrotask(() => hear(tell)) };
  return (a) => hub.take(port, a);
}

function connect(): (ask: Ask) => void {
  if (typeof SharedWorker === "undefined") return alone();
  const worker = new SharedWorker(trusted(new URL(workerURL, location.href).href), { type: "module", name: "waybill" });
  const { port } = worker;
  port.addEventListener("message", ({ data }: MessageEvent<Tell>) => hear(data));
  port.start();
  setInterval(() => port.postMessage({ do: "alive" } satisfies Ask), 20_000);
  addEventListener("pagehide", () => port.postMessage({ do: "bye" } satisfies Ask));
  return (a) => port.postMessage(a);
}

/** Opens a stream after an event, shared with other tabs that have the same. The answer closes it. */
export function openStream(url: string, lastId: string | undefined, handlers: StreamHandlers): () => void {
  ask ??= connect();
  const key = nextKey++;
  open.set(key, handlers);
  ask({ do: "open", key, url, lastId });
  return () => {
    open.delete(key);
    ask?.({ do: "close", key });
  };
}
