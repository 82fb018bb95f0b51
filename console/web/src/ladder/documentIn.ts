import { isObject, parseJson, type Json } from "../api/json";

/**
 * Returns the document in a model's output for display: the first JSON value, or its payload if it is an envelope. The
 * host has already validated it.
 */
export function documentIn(text: string | undefined, kind: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  const whole = firstJson(text);
  const one = Array.isArray(whole) ? (whole.find((v) => isObject(v) && (kind === undefined || v.type === kind)) ?? whole[0]) : whole;
  return isObject(one) && typeof one.type === "string" && "payload" in one ? one.payload : one;
}

function firstJson(text: string): Json | undefined {
  const from = text.search(/[[{]/);
  if (from < 0) return undefined;
  for (let to = text.length; to > from; to = Math.max(text.lastIndexOf("}", to - 1), text.lastIndexOf("]", to - 1)) + 1) {
    try {
      return parseJson(text.slice(from, to));
    } catch {
      if (to <= from + 1 || text.length - to > 4096) return undefined;
      to -= 1;
    }
  }
  return undefined;
}
