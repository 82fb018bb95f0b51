// JSON with exact numbers: JavaScript numbers cannot represent 9007199254740993 or 1.10.

/** A number as written, because JavaScript would change it. */
export class ExactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
  valueOf(): number {
    return Number(this.text);
  }
}

/** Returns an integer of any size; undefined if the value is not an integer. */
export function integerOf(value: unknown): bigint | undefined {
  if (value instanceof ExactNumber && /^-?\d+$/.test(value.text)) return BigInt(value.text);
  const n = value instanceof ExactNumber ? value.valueOf() : value;
  return typeof n === "number" && Number.isInteger(n) ? BigInt(n) : undefined;
}

export type Json = null | boolean | number | string | ExactNumber | Json[] | { [name: string]: Json };

// JSON.parse drops a number's text, so such documents are parsed in two steps. First, numbers that would change become
// strings with a marker prefix. Then the marked strings become ExactNumber. A string that already starts with the
// marker gets a second one.
const mark = "\ue000";
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
// Matches numbers that may change: 16 or more digits, trailing fraction zeros, an exponent, negative zero; or the
// marker itself.
const delicate = /\d{16}|\d\.\d*0(?!\d)|\d\.\d{15}|\d[eE][-+\d]|-0|\ue000|\\u[eE]000/;

/** Parses a document; numbers that would change become ExactNumber. */
export function parseJson(text: string): Json {
  if (!delicate.test(text)) return JSON.parse(text) as Json;
  JSON.parse(text); // reject invalid JSON before it is rewritten
  const marked = text.replace(token, (found, at: number) => {
    if (found.startsWith(`"${mark}`) || /^"\\u[eE]000/.test(found)) {
      const name = /^\s*:/.test(text.slice(at + found.length, at + found.length + 20));
      return name ? found : `"${mark}${found.slice(1)}`;
    }
    return found.startsWith('"') || String(Number(found)) === found ? found : `"${mark}${found}"`;
  });
  return JSON.parse(marked, (_name, value: unknown) => {
    if (typeof value !== "string" || !value.startsWith(mark)) return value;
    return value.startsWith(mark + mark) ? value.slice(1) : new ExactNumber(value.slice(1));
  }) as Json;
}

/** Serialises a document with its numbers as written. */
export function stringifyJson(value: unknown, indent?: number): string {
  let hasExact = false;
  const text =
    JSON.stringify(
      value,
      (_name, v: unknown) => {
        if (v instanceof ExactNumber) {
          hasExact = true;
          return mark + v.text;
        }
        return typeof v === "string" && v.startsWith(mark) ? mark + v : v;
      },
      indent,
    ) ?? "null";
  if (!hasExact && !text.includes(mark)) return text;
  return text.replace(token, (found) => {
    if (found.startsWith(`"${mark}${mark}`)) return `"${found.slice(2)}`;
    return found.startsWith(`"${mark}`) ? found.slice(2, -1) : found;
  });
}

export function isObject(value: unknown): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}
