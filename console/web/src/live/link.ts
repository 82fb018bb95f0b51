import workerURL from "./worker?sharedworker&url";
import { Hub, type HubRequest, type Port, type HubMessage } from "./hub";
import type { Frame, LiveState } from "./sse";

export type StreamHandlers = {
  onFrames: (frames: Frame[]) => void;
  onState: (state: LiveState) => void;
  /** The stream closed after this many failures; -1: this tab has to catch up by polling. */
  onClosed: (failures: number) => void;
  onRefused: (error: { status: number; code: string; message: string }) => void;
};

const open = new Map<number, StreamHandlers>();
let nextKey = 1;
let send: ((request: HubRequest) => void) | undefined;

function deliver(message: HubMessage): void {
  const handlers = open.get(message.key);
  if (!handlers) return;
  if ("frames" in message) handlers.onFrames(message.frames);
  else if ("state" in message) handlers.onState(message.state);
  else if ("refused" in message) handlers.onRefused(message.refused);
  else handlers.onClosed("closed" in message ? message.closed : -1);
}

type Policy = { createScriptURL: (url: string) => string };
type TrustedTypes = { createPolicy: (name: string, rules: Policy) => Policy };

// The only script URL that is trusted (require-trusted-types-for 'script').
function trusted(url: string): string {
  const { trustedTypes } = globalThis as unknown as { trustedTypes?: TrustedTypes };
  return trustedTypes?.createPolicy("waybill-worker", { createScriptURL: (u) => u }).createScriptURL(url) ?? url;
}

// Without shared workers, each tab has its own hub.
function localHub(): (request: HubRequest) => void {
  const hub = new Hub();
  const port: Port = { postMessage: (message) => queueMicrotask(() => deliver(message)) };
  return (request) => hub.handle(port, request);
}

function connect(): (request: HubRequest) => void {
  if (typeof SharedWorker === "undefined") return localHub();
  const worker = new SharedWorker(trusted(new URL(workerURL, location.href).href), { type: "module", name: "waybill" });
  const { port } = worker;
  port.addEventListener("message", ({ data }: MessageEvent<HubMessage>) => deliver(data));
  port.start();
  setInterval(() => port.postMessage({ do: "alive" } satisfies HubRequest), 20_000);
  addEventListener("pagehide", () => port.postMessage({ do: "bye" } satisfies HubRequest));
  return (request) => port.postMessage(request);
}

/** Opens a stream after an event, shared with other tabs of the same URL. The returned function closes it. */
export function openStream(url: string, lastId: string | undefined, handlers: StreamHandlers): () => void {
  send ??= connect();
  const key = nextKey++;
  open.set(key, handlers);
  send({ do: "open", key, url, lastId });
  return () => {
    open.delete(key);
    send?.({ do: "close", key });
  };
}
