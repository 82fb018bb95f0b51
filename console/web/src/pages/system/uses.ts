// Which keys were used, from the audit log.
import type { Json } from "../../api/json";
import { number, record, text } from "../../ladder/events";

type Calls = { granted: number; denied: number };
/** The calls of a key. Entries are the newest first, so the time is that of the last call. */
export type Use = { key: string; at: string; scopes: Map<string, Calls> };

/** Adds up the entries `key.used`, which a host writes once a minute for each key. */
export function usesIn(entries: readonly Json[]): Use[] {
  const out = new Map<string, Use>();
  for (const e of entries.map(record)) {
    const key = /^keys\/(.+)$/.exec(text(e.target) ?? "")?.[1];
    if (e.action !== "key.used" || key === undefined) continue;
    const details = record(e.details);
    const use = out.get(key) ?? { key, at: text(details.lastAt) ?? text(e.occurredAt) ?? "", scopes: new Map<string, Calls>() };
    for (const kind of ["granted", "denied"] as const) {
      for (const [scope, n] of Object.entries(record(details[kind]))) {
        const sum = use.scopes.get(scope) ?? { granted: 0, denied: 0 };
        use.scopes.set(scope, { ...sum, [kind]: sum[kind] + (number(n) ?? 0) });
      }
    }
    out.set(key, use);
  }
  return [...out.values()];
}
