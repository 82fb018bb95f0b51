import type { Json } from "../../api/json";

// What the host measures or makes anew in each run does not count in a comparison (services/gateway/runview).
const measured = new Set(["runId", "durationMs", "latencyMs", "elapsedMs", "traceparent", "traceId", "spanId", "timestamp"]);

/** A payload without the members that do not count. */
export function counting(payload: { [name: string]: Json }): Json {
  return Object.fromEntries(Object.entries(payload).filter(([name]) => !measured.has(name)));
}
