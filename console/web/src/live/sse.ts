import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "../api/errors";

export type Frame = { id: string | undefined; event: string | undefined; data: string };

/** What a stream is doing. Polling means that streaming does not work here, for now. */
export type LiveState = "connecting" | "live" | "reconnecting" | "polling" | "ended";

export type StreamOptions = {
  url: string;
  /** The id after which to go on; undefined: from the start. */
  lastId: () => string | undefined;
  onFrames: (frames: Frame[]) => void;
  onState: (state: LiveState) => void;
  /** Called when the host ends the stream, or a try has failed, before the next one. True: there is nothing more to come. */
  onClosed: (failures: number) => Promise<boolean>;
  /** Called when the host refuses for good. */
  onRefused: (error: ApiError) => void;
  signal: AbortSignal;
};

const firstDelay = 500;
const longestDelay = 15_000;
const pollAfter = 3;

/**
 * Follows a stream of events until it ends, is refused or is aborted. It is fetch and not EventSource, which says
 * nothing of an answer's status and asks again by rules of its own.
 */
export async function follow(options: StreamOptions): Promise<void> {
  const { signal, onState } = options;
  let failures = 0;
  onState("connecting");
  while (!signal.aborted) {
    try {
      await once(options, () => {
        failures = 0;
        onState("live");
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
        options.onRefused(error);
        return;
      }
      failures++;
    }
    if (signal.aborted) return;
    if (failures > 0) onState(failures > pollAfter ? "polling" : "reconnecting");
    try {
      if (await options.onClosed(failures)) {
        onState("ended");
        return;
      }
    } catch {
      failures++;
    }
    if (failures > 0) await delay(Math.min(longestDelay, firstDelay * 2 ** (failures - 1)), signal);
    else onState("reconnecting");
  }
}

async function once({ url, lastId, onFrames, signal }: StreamOptions, onOpen: () => void): Promise<void> {
  const id = lastId();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (id !== undefined) headers["Last-Event-ID"] = id;
  const response = await fetch(url, { headers, signal, cache: "no-store" });
  if (!response.ok || !response.body) {
    throw errorOf(response, await response.json().catch(() => undefined));
  }
  onOpen();
  let frames: Frame[] = [];
  const parser = createParser({ onEvent: (event) => frames.push({ id: event.id, event: event.event, data: event.data }) });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(value);
    if (frames.length > 0) onFrames(frames);
    frames = [];
  }
}

/** Waits, but not longer than the signal lets it. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
