import { isObject, stringifyJson, type Json } from "../api/json";

/** A place at which two values differ; undefined stands for nothing there. */
export interface Change {
  pointer: string;
  a: Json | undefined;
  b: Json | undefined;
}

const maxChanges = 200;

/** The smallest places at which two values differ, in the order of the first. */
export function changes(a: Json | undefined, b: Json | undefined, pointer = "", out: Change[] = []): Change[] {
  if (out.length >= maxChanges) return out;
  const bothObjects = isObject(a) && isObject(b);
  if (bothObjects || (Array.isArray(a) && Array.isArray(b))) {
    const names = new Set([...Object.keys(a as object), ...Object.keys(b as object)]);
    for (const name of names) {
      const child = `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      changes((a as { [n: string]: Json })[name], (b as { [n: string]: Json })[name], child, out);
    }
    return out;
  }
  if (a === undefined && b === undefined) return out;
  if (a === undefined || b === undefined || stringifyJson(a) !== stringifyJson(b)) out.push({ pointer, a, b });
  return out;
}
