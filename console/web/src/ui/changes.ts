import { isObject, stringifyJson, type Json } from "../api/json";

/** A difference between two values; undefined means missing. */
export interface Change {
  pointer: string;
  a: Json | undefined;
  b: Json | undefined;
}

const maxChanges = 200;

/** Lists the innermost differences between two values, in the order of the first. */
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
