import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "../api/errors";

export type Frame = { id: string | undefined; event: string | undefined; data: string };

/** The state of a stream. Polling: streaming is not available for now. Refused: the host rejected the stream for good. */
export type LiveState = "connecting" | "live" | "reconnecting" | "polling" | "ended" | "refused";

export type StreamOptions = {
  url: string;
  /** The id to continue after; undefined starts from the beginning. */
  lastId: () => string | undefined;
  onFrames: (frames: Frame[]) => void;
  onState: (state: LiveState) => void;
  /** Called after the host closed the stream or an attempt failed, before the next attempt. */
  onClosed: (failures: number) => void;
  /** Called when the host rejects the stream for good. */
  onRefused: (error: ApiError) => void;
  signal: AbortSignal;
};

const firstDelay = 500;
const longestDelay = 15_000;
const pollAfter = 3;

/**
 * Follows an event stream until it is rejected or aborted. Uses fetch, because EventSource hides the response status
 * and retries by its own rules.
 */
export async function follow(options: StreamOptions): Promise<void> {
  const { signal, onState } = options;
  let failures = 0;
  onState("connecting");
  while (!signal.aborted) {
    try {
      const over = await once(options, () => {
        failures = 0;
        onState("live");
      });
      if (over) {
        onState("ended");
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
        options.onRefused(error);
        return;
      }
      failures++;
    }
    if (signal.aborted) return;
    onState(failures > pollAfter ? "polling" : "reconnecting");
    options.onClosed(failures);
    await delay(Math.min(longestDelay, firstDelay * 2 ** Math.max(0, failures - 1)), signal);
  }
}

// The host sends a comment every 15 seconds. A longer silence means that a proxy buffers the stream.
const silence = 40_000;

/** Reads one connection to its end. Returns true if the run has ended and nothing is left to read. */
async function once({ url, lastId, onFrames, signal }: StreamOptions, onOpen: () => void): Promise<boolean> {
  const id = lastId();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (id !== undefined) headers["Last-Event-ID"] = id;
  const watchdog = new AbortController();
  let timer = setTimeout(() => watchdog.abort(), silence);
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, watchdog.signal]), cache: "no-store" });
    if (response.status === 204) return true;
    if (!response.ok || !response.body) {
      throw errorOf(response, await response.json().catch(() => undefined));
    }
    onOpen();
    let frames: Frame[] = [];
    const parser = createParser({ onEvent: (event) => frames.push({ id: event.id, event: event.event, data: event.data }) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => watchdog.abort(), silence);
      parser.feed(value);
      if (frames.length > 0) onFrames(frames);
      frames = [];
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until the timeout or the abort of the signal. */
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
