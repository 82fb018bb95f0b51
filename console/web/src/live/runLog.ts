import { isTerminal, type RunEvent } from "../api/model";
import { parseJson } from "../api/json";
import type { ApiError } from "../api/errors";
import { fetchJson } from "../api/client";
import { hostURL } from "../app/base";
import { follow, type Frame, type LiveState } from "./sse";

const terminalTypes = new Set(["run.completed", "run.failed", "run.cancelled"]);

type PollAnswer = { events: RunEvent[]; isComplete: boolean; runStatus: string };

/**
 * The event log of a run as far as it has come: events 0..n without a hole. It is read once as a stream, goes on
 * where the stream broke, and asks by poll for what a stream has left out.
 */
export class RunLog {
  readonly runId: string;
  readonly events: RunEvent[] = [];
  state: LiveState = "connecting";
  error: ApiError | undefined;
  /** Grows with every change, for those who compare. */
  version = 0;
  /** When the last event came in, by this clock. */
  heardAt = 0;

  readonly #listeners = new Set<() => void>();
  #abort: AbortController | undefined;
  #scheduled = false;
  #filling = false;

  constructor(runId: string) {
    this.runId = runId;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1 && !this.ended) this.#start();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
  };

  get last(): number {
    return this.events.length - 1;
  }

  get ended(): boolean {
    const last = this.events.at(-1);
    return last !== undefined && terminalTypes.has(last.type);
  }

  #start(): void {
    const abort = new AbortController();
    this.#abort = abort;
    void follow({
      url: `${hostURL}/v1/runs/${encodeURIComponent(this.runId)}/events?streamMode=debug`,
      lastId: () => (this.last >= 0 ? String(this.last) : undefined),
      onFrames: (frames) => this.#take(frames),
      onState: (state) => {
        this.state = this.ended ? "ended" : state;
        this.#changed();
      },
      onClosed: async (failures) => {
        if (this.ended) return true;
        if (failures > 3 || failures === 0) await this.#poll(abort.signal);
        return this.ended;
      },
      onRefused: (error) => {
        this.error = error;
        this.state = "ended";
        this.#changed();
      },
      signal: abort.signal,
    });
  }

  #stop(): void {
    this.#abort?.abort();
    this.#abort = undefined;
  }

  #take(frames: Frame[]): void {
    for (const frame of frames) {
      if (!frame.data || frame.event === "run.annotated") continue;
      this.#add(parseJson(frame.data) as unknown as RunEvent);
    }
    this.#changed();
  }

  // An event is taken if it is the next one. An older one is known; a later one says that some were lost.
  #add(event: RunEvent): void {
    const next = this.events.length;
    if (event.sequence === next) this.events.push(event);
    else if (event.sequence > next && this.#abort) this.#fill(this.#abort.signal);
    this.heardAt = Date.now();
  }

  #fill(signal: AbortSignal): void {
    if (this.#filling) return;
    this.#filling = true;
    void this.#poll(signal)
      .catch(() => undefined) // the stream goes on, and the next event asks again
      .finally(() => {
        this.#filling = false;
      });
  }

  async #poll(signal: AbortSignal): Promise<void> {
    for (;;) {
      const answer = await fetchJson<PollAnswer>(
        `/v1/runs/${encodeURIComponent(this.runId)}/events/poll?lastSequence=${this.last}&timeout=1&limit=1000`,
        { signal },
      );
      const before = this.events.length;
      for (const event of answer.events) if (event.sequence === this.events.length) this.events.push(event);
      if (this.events.length > before) this.#changed();
      if (answer.events.length < 1000 || isTerminal(answer.runStatus) === answer.isComplete) return;
    }
  }

  // Those who look are told once a frame, or once a while if nobody looks.
  #changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const tell = (): void => {
      this.#scheduled = false;
      this.version++;
      for (const listener of this.#listeners) listener();
    };
    if (document.visibilityState === "visible") requestAnimationFrame(tell);
    else setTimeout(tell, 250);
  }
}
