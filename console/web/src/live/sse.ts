import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "../api/errors";

export type Frame = { id: string | undefined; event: string | undefined; data: string };

/** What a stream is doing. Polling means that streaming does not work here, for now; refused that the host tells no more. */
export type LiveState = "connecting" | "live" | "reconnecting" | "polling" | "ended" | "refused";

export type StreamOptions = {
  url: string;
  /** The id after which to go on; undefined: from the start. */
  lastId: () => string | undefined;
  onFrames: (frames: Frame[]) => void;
  onState: (state: LiveState) => void;
  /** Called when the host has ended the stream, or a try has failed, before the next one. */
  onClosed: (failures: number) => void;
  /** Called when the host refuses for good. */
  onRefused: (error: ApiError) => void;
  signal: AbortSignal;
};

const firstDelay = 500;
const longestDelay = 15_000;
const pollAfter = 3;

/**
 * Follows a stream of events until it is refused or aborted. It is fetch and not EventSource, which says
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
    onState(failures > pollAfter ? "polling" : "reconnecting");
    options.onClosed(failures);
    await delay(Math.min(longestDelay, firstDelay * 2 ** Math.max(0, failures - 1)), signal);
  }
}

// The host sends a comment every 15 seconds. Silence for longer means that something in between keeps what it sends.
const silence = 40_000;

async function once({ url, lastId, onFrames, signal }: StreamOptions, onOpen: () => void): Promise<void> {
  const id = lastId();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (id !== undefined) headers["Last-Event-ID"] = id;
  const watchdog = new AbortController();
  let timer = setTimeout(() => watchdog.abort(), silence);
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, watchdog.signal]), cache: "no-store" });
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
