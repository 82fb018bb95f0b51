// Payload media that may be shown: inline bytes and bytes served by this host. Nothing else is fetched (OpenWOP
// envelope contract §12, §17).
import { isObject, type Json } from "../api/json";

export type Source = { load: string } | { bytes: string } | { foreign: string } | { missing: true };

export interface Asset {
  source: Source;
  mimeType: string | undefined;
  alt: string | undefined;
  title: string | undefined;
  name: string | undefined;
  size: number | undefined;
  seconds: number | undefined;
}

const text = (v: Json | undefined): string | undefined => (typeof v === "string" && v !== "" ? v : undefined);
const count = (v: Json | undefined): number | undefined => (typeof v === "number" ? v : undefined);

/** Parses the payload of a media envelope; origin is the page's. */
export function assetOf(payload: Json | undefined, hint: { mimeType?: string | undefined; alt?: string | undefined; title?: string | undefined } | undefined, origin: string): Asset {
  const p = isObject(payload) ? payload : {};
  return {
    source: sourceOf(p, origin),
    mimeType: text(p.mimeType) ?? hint?.mimeType,
    alt: text(p.alt) ?? (hint?.alt || undefined),
    title: hint?.title || undefined,
    name: text(p.name) ?? hint?.title,
    size: count(p.bytes),
    seconds: count(p.durationSeconds),
  };
}

function sourceOf(p: { [name: string]: Json }, origin: string): Source {
  const base64 = text(p.base64);
  if (base64 !== undefined) return { bytes: base64 };
  const url = text(p.url);
  if (url === undefined) return { missing: true };
  const parsed = URL.parse(url, origin);
  const ours = parsed !== null && parsed.origin === origin && parsed.username === "" && parsed.password === "";
  return ours ? { load: parsed.href } : { foreign: url };
}

// Image types that execute no code.
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const sounds = /^audio\/[\w.+-]+$/;

export const isPicture = (mimeType: string | undefined): boolean => mimeType !== undefined && pictures.has(mimeType);
export const isSound = (mimeType: string | undefined): boolean => mimeType !== undefined && sounds.test(mimeType);

/** Formats a number of bytes. */
export function inBytes(n: number): string {
  if (n < 1000) return `${n} bytes`;
  const units = ["kB", "MB", "GB"];
  const power = Math.min(units.length, Math.floor(Math.log10(n) / 3));
  return `${(n / 1000 ** power).toFixed(n / 1000 ** power < 10 ? 1 : 0)} ${units[power - 1]}`;
}

/** Decodes base64; undefined if invalid. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
