import type { ApiError } from "../api/errors";
import { follow, type Frame, type LiveState } from "./sse";

// A browser opens six connections to an HTTP/1.1 host, regardless of the number of tabs. All tabs therefore share one
// hub in a worker. The hub leaves some connections for other requests.
export const mostStreams = 4;

export type HubRequest = { do: "open"; key: number; url: string; lastId: string | undefined } | { do: "close"; key: number } | { do: "alive" } | { do: "bye" };

export type HubMessage =
  | { key: number; frames: Frame[] }
  | { key: number; state: LiveState }
  | { key: number; closed: number }
  /** The tab has to poll for earlier events: it joined an open stream. */
  | { key: number; joined: true }
  | { key: number; refused: Pick<ApiError, "status" | "code" | "message"> };

export type Port = { postMessage: (message: HubMessage) => void };

type Listener = { port: Port; key: number };

/** Shares streams between tabs. Only the most recently opened ones are connected. */
export class Hub {
  readonly #streams = new Map<string, Stream>();
  readonly #lastMessageAt = new Map<Port, number>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  handle(port: Port, request: HubRequest): void {
    this.#lastMessageAt.set(port, this.#now());
    switch (request.do) {
      case "open":
        this.#open({ port, key: request.key }, request.url, request.lastId);
        break;
      case "close":
        this.#drop((l) => l.port === port && l.key === request.key);
        break;
      case "bye":
        this.#forget(port);
        break;
      case "alive":
        break;
    }
  }

  /** Removes tabs without a recent keep-alive. */
  sweep(silence: number): void {
    for (const [port, at] of this.#lastMessageAt) if (this.#now() - at > silence) this.#forget(port);
  }

  get connected(): number {
    return [...this.#streams.values()].filter((s) => s.connected).length;
  }

  #forget(port: Port): void {
    this.#lastMessageAt.delete(port);
    this.#drop((l) => l.port === port);
  }

  #open(listener: Listener, url: string, lastId: string | undefined): void {
    const known = this.#streams.get(url);
    // The latest stream is probably the visible one. It moves to the end of the map and loses its connection last.
    this.#streams.delete(url);
    const stream = known ?? new Stream(url, lastId);
    this.#streams.set(url, stream);
    stream.add(listener, known !== undefined);
    this.#share();
  }

  #drop(gone: (l: Listener) => boolean): void {
    for (const [url, stream] of this.#streams) {
      stream.remove(gone);
      if (!stream.wanted) {
        stream.park();
        this.#streams.delete(url);
      }
    }
    this.#share();
  }

  #share(): void {
    const all = [...this.#streams.values()];
    const excess = Math.max(0, all.length - mostStreams);
    for (const stream of all.slice(0, excess)) stream.park();
    for (const stream of all.slice(excess)) stream.connect();
  }
}

class Stream {
  readonly #url: string;
  #listeners: Listener[] = [];
  #lastId: string | undefined;
  #state: LiveState = "connecting";
  #abort: AbortController | undefined;

  constructor(url: string, lastId: string | undefined) {
    this.#url = url;
    this.#lastId = lastId;
  }

  get wanted(): boolean {
    return this.#listeners.length > 0;
  }

  get connected(): boolean {
    return this.#abort !== undefined;
  }

  add(listener: Listener, late: boolean): void {
    this.#listeners.push(listener);
    listener.port.postMessage({ key: listener.key, state: this.#state });
    if (late) listener.port.postMessage({ key: listener.key, joined: true });
  }

  remove(gone: (l: Listener) => boolean): void {
    this.#listeners = this.#listeners.filter((l) => !gone(l));
  }

  park(): void {
    if (!this.#abort) return;
    this.#abort.abort();
    this.#abort = undefined;
    this.#setState("polling");
  }

  connect(): void {
    if (this.#abort) return;
    this.#abort = new AbortController();
    void follow({
      url: this.#url,
      lastId: () => this.#lastId,
      onFrames: (frames) => {
        this.#lastId = frames.findLast((f) => f.id)?.id ?? this.#lastId;
        this.#post((key) => ({ key, frames }));
      },
      onState: (state) => this.#setState(state),
      onClosed: (failures) => this.#post((key) => ({ key, closed: failures })),
      onRefused: ({ status, code, message }) => this.#post((key) => ({ key, refused: { status, code, message } })),
      signal: this.#abort.signal,
    });
  }

  #setState(state: LiveState): void {
    this.#state = state;
    this.#post((key) => ({ key, state }));
  }

  #post(message: (key: number) => HubMessage): void {
    for (const { port, key } of this.#listeners) port.postMessage(message(key));
  }
}
