import type { Json } from "../../api/json";

// Members that differ in every run and are ignored in comparisons (services/gateway/runview).
const measured = new Set(["runId", "durationMs", "latencyMs", "elapsedMs", "traceparent", "traceId", "spanId", "timestamp"]);

/** Removes the ignored members of a payload. */
export function counting(payload: { [name: string]: Json }): Json {
  return Object.fromEntries(Object.entries(payload).filter(([name]) => !measured.has(name)));
}
