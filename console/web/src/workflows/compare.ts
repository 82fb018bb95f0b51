import { isObject, type Json } from "../api/json";
import { changes, type Change } from "../ui/changes";
import type { Definition } from "./definition";

// Lists whose entries have a name of their own: an entry that moves has not changed.
const keys = { nodes: "id", edges: "id", triggers: "id", groups: "id", variables: "name" } as const;

/** What differs between two definitions. Nodes, edges and variables are compared by their ids and names. */
export function definitionChanges(a: Definition, b: Definition): Change[] {
  return changes(keyed(a), keyed(b));
}

function keyed(definition: Definition): Json {
  const out: Definition = { ...definition };
  for (const [list, key] of Object.entries(keys)) {
    const entries = definition[list];
    if (!Array.isArray(entries)) continue;
    const named = new Map(entries.map((e) => [isObject(e) && typeof e[key] === "string" ? e[key] : "", e]));
    if (named.size === entries.length && !named.has("")) out[list] = Object.fromEntries(named);
  }
  return out;
}
