import { createParser } from "eventsource-parser";
import { errorOf } from "../api/errors";
import { parseJson } from "../api/json";
import type { RunSnapshot } from "../api/model";
import { hostURL } from "../api/base";

/** Returns the state of a run as of an event: the first item of a state stream that continues after it. */
export async function snapshotAt(runId: string, seq: number, signal: AbortSignal): Promise<RunSnapshot> {
  const over = new AbortController();
  try {
    const response = await fetch(`${hostURL}/v1/runs/${encodeURIComponent(runId)}/events?streamMode=values`, {
      headers: { Accept: "text/event-stream", "Last-Event-ID": String(seq) },
      signal: AbortSignal.any([signal, over.signal]),
      cache: "no-store",
    });
    if (response.status === 204) return await lastSnapshot(runId, signal); // of the last event of an ended run
    if (!response.ok || !response.body) throw errorOf(response, await response.json().catch(() => undefined));
    let found: string | undefined;
    const parser = createParser({
      onEvent: ({ event, id, data }) => {
        if (event === "state.snapshot" && id === String(seq)) found ??= data;
      },
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (value !== undefined) parser.feed(value);
      if (found !== undefined) return parseJson(found) as unknown as RunSnapshot;
      if (done) throw new Error(`The host does not provide the state as of event ${seq}.`);
    }
  } finally {
    over.abort(); // only the first state is needed
  }
}

/** Returns the state of a run as of its last event. */
async function lastSnapshot(runId: string, signal: AbortSignal): Promise<RunSnapshot> {
  const response = await fetch(`${hostURL}/v1/runs/${encodeURIComponent(runId)}`, { signal, cache: "no-store" });
  if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  return parseJson(await response.text()) as unknown as RunSnapshot;
}
