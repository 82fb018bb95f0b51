// JSON whose numbers stay what was written: 9007199254740993 and 1.10 have no equal among the numbers of JavaScript.

/** A number that JavaScript would change, as it was written. */
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

/** A whole number as it was written, however large; undefined: it is none. */
export function integerOf(value: unknown): bigint | undefined {
  if (value instanceof ExactNumber && /^-?\d+$/.test(value.text)) return BigInt(value.text);
  const n = value instanceof ExactNumber ? value.valueOf() : value;
  return typeof n === "number" && Number.isInteger(n) ? BigInt(n) : undefined;
}

export type Json = null | boolean | number | string | ExactNumber | Json[] | { [name: string]: Json };

// JSON.parse is fast and gives a number's text to nobody, so a document with numbers that would change is read in two steps:
// those numbers are made strings that begin with a mark, and then the marked strings numbers. A string that begins with the
// mark by itself gets a second one.
const mark = "\ue000";
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
// More digits than a double surely holds, zeros after the point, an exponent, the sign of zero; or the mark itself.
const delicate = /\d{16}|\d\.\d*0(?!\d)|\d\.\d{15}|\d[eE][-+\d]|-0|\ue000|\\u[eE]000/;

/** Reads a document; numbers that would change become ExactNumber. */
export function parseJson(text: string): Json {
  if (!delicate.test(text)) return JSON.parse(text) as Json;
  JSON.parse(text); // what is no JSON has to fail as it stands
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

/** Writes a document as it was read. */
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
