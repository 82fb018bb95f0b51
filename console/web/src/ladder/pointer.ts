// JSON Pointers (RFC 6901).
import { isObject, type Json } from "../api/json";

const steps = (pointer: string): string[] => pointer.split("/").slice(1).map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
const written = (all: string[]): string => all.map((s) => `/${s.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Returns the value at a pointer; undefined if it is missing. */
export function at(document: Json | undefined, pointer: string): Json | undefined {
  let here = document;
  for (const step of steps(pointer)) {
    if (Array.isArray(here)) here = here[Number(step)];
    else if (isObject(here) && Object.hasOwn(here, step)) here = here[step];
    else return undefined;
  }
  return here;
}

/** Returns the pointer of a schema rule; for `required`, of the missing member. */
export function ruleAt(schema: Json | undefined, pointer: string, message: string): string {
  const found = nearest(schema, pointer).pointer;
  const list = at(schema, found);
  const missing = /^required member missing: (\S+)$/.exec(message)?.[1];
  const index = Array.isArray(list) && missing !== undefined ? list.indexOf(missing) : -1;
  return index < 0 ? found : `${found}/${index}`;
}

/**
 * Returns the closest existing position of a pointer: itself, the first element for `*`, or the parent of a missing
 * member.
 */
export function nearest(document: Json | undefined, pointer: string): { pointer: string; exact: boolean } {
  const found: string[] = [];
  let here = document;
  for (const step of steps(pointer)) {
    const name = step === "*" && Array.isArray(here) ? "0" : step;
    const next = at(here, written([name]));
    if (next === undefined) return { pointer: written(found), exact: false };
    found.push(name);
    here = next;
  }
  return { pointer: written(found), exact: true };
}
