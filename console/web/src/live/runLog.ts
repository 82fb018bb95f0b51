import { fetchJson } from "../api/client";
import { ApiError, isStatus } from "../api/errors";
import { parseJson } from "../api/json";
import type { RunEvent } from "../api/model";
import { signedOut } from "../api/query";
import { hostURL } from "../api/base";
import { openStream } from "./link";
import { delay, type Frame, type LiveState } from "./sse";

const terminalTypes = new Set(["run.completed", "run.failed", "run.cancelled"]);

// How long a background tab keeps its stream.
const hiddenFor = 60_000;
const pollPage = 1000;
const pollPause = 2000;

type PollAnswer = { events: RunEvent[] };

/**
 * The event log of a run: events 0..n without a gap. It is read as a stream, which continues after a disconnect.
 * Missing events are fetched by polling.
 */
export class RunLog {
  readonly runId: string;
  readonly events: RunEvent[] = [];
  state: LiveState = "connecting";
  error: ApiError | undefined;
  /** Incremented with every change, for comparisons. */
  version = 0;

  readonly #listeners = new Set<() => void>();
  #abort: AbortController | undefined;
  readonly #recorded: boolean;
  #scheduled = false;
  #filling = false;

  /** With given events, nothing is requested from the host. */
  constructor(runId: string, recorded?: readonly RunEvent[]) {
    this.runId = runId;
    this.#recorded = recorded !== undefined;
    if (recorded) {
      this.events.push(...recorded);
      this.state = "ended";
    }
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1 && !this.#recorded) this.#attend();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#leave();
    };
  };

  get last(): number {
    return this.events.length - 1;
  }

  get ended(): boolean {
    const last = this.events.at(-1);
    return last !== undefined && terminalTypes.has(last.type);
  }

  // Follows the run while the page is visible. A tab hidden for a minute closes its stream.
  #attend(): void {
    const leaving = new AbortController();
    this.#leave = () => {
      leaving.abort();
      this.#stop();
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    document.addEventListener(
      "visibilitychange",
      () => {
        clearTimeout(timer);
        if (document.visibilityState === "visible") this.#start();
        else timer = setTimeout(() => this.#stop(), hiddenFor);
      },
      { signal: leaving.signal },
    );
    this.#start();
  }

  #leave: () => void = () => undefined;

  #start(): void {
    if (this.ended || this.#abort) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.error = undefined;
    const close = openStream(`${hostURL}/v1/runs/${encodeURIComponent(this.runId)}/events?streamMode=debug`, this.last >= 0 ? String(this.last) : undefined, {
      onFrames: (frames) => this.#take(frames),
      onState: (state) => this.#setState(state),
      onClosed: (failures) => {
        if (failures <= 0 || failures > 3) this.#fill(abort.signal);
      },
      onRefused: (error) => {
        this.#refuse(new ApiError(error.status, error.code, error.message));
      },
    });
    abort.signal.addEventListener("abort", close);
  }

  // The host rejected the stream; the run may continue. After a sign-out, the sign-in page replaces this page.
  #refuse(error: ApiError): void {
    if (isStatus(error, 401)) signedOut();
    this.error = error;
    this.#setState("refused");
    this.#stop();
  }

  #stop(): void {
    this.#abort?.abort();
    this.#abort = undefined;
  }

  #setState(state: LiveState): void {
    this.state = this.ended ? "ended" : state;
    if (state === "polling" && this.#abort) this.#fill(this.#abort.signal);
    this.#changed();
  }

  #take(frames: Frame[]): void {
    for (const frame of frames) {
      if (!frame.data || frame.event === "run.annotated") continue;
      this.#add(parseJson(frame.data) as unknown as RunEvent);
    }
    this.#grown();
  }

  // Appends an event if it is the next one. Earlier events are duplicates; later ones mean a gap.
  #add(event: RunEvent): void {
    const next = this.events.length;
    if (event.sequence === next) this.events.push(event);
    else if (event.sequence > next && this.#abort) this.#fill(this.#abort.signal);
  }

  #grown(): void {
    if (this.ended) {
      this.state = "ended";
      this.#stop();
    }
    this.#changed();
  }

  // Polls for missing events, and continues while the stream delivers none.
  #fill(signal: AbortSignal): void {
    if (this.#filling) return;
    this.#filling = true;
    void this.#poll(signal)
      .catch((error: unknown) => {
        if (!isStatus(error, 401)) return delay(pollPause, signal); // the next poll may succeed
        this.#refuse(error as ApiError);
        return undefined;
      })
      .finally(() => {
        this.#filling = false;
        if (this.state === "polling" && !signal.aborted && !this.ended) this.#fill(signal);
      });
  }

  async #poll(signal: AbortSignal): Promise<void> {
    for (;;) {
      const wait = this.state === "polling" ? 2 : 1;
      const answer = await fetchJson<PollAnswer>(
        `/v1/runs/${encodeURIComponent(this.runId)}/events/poll?lastSequence=${this.last}&timeout=${wait}&limit=${pollPage}`,
        { signal },
      );
      for (const event of answer.events) if (event.sequence === this.events.length) this.events.push(event);
      if (answer.events.length > 0) this.#grown();
      if (answer.events.length < pollPage) return;
    }
  }

  // Notifies subscribers once per frame, or at intervals in a hidden tab.
  #changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const notify = (): void => {
      this.#scheduled = false;
      this.version++;
      for (const listener of this.#listeners) listener();
    };
    if (document.visibilityState === "visible") requestAnimationFrame(notify);
    else setTimeout(notify, 250);
  }
}
