// Filters that somebody has given a name, kept in this browser.
import { consolePath } from "../../api/base";

export type Saved = { name: string; filter: string };

// Two hosts on one origin, below different paths, have filters of their own.
const key = `waybill.filters ${consolePath}`;
export const maxSaved = 20;

export function readSaved(stored: string | null): Saved[] {
  try {
    const all: unknown = JSON.parse(stored ?? "[]");
    return Array.isArray(all) ? all.filter(isSaved).slice(0, maxSaved) : [];
  } catch {
    return [];
  }
}

const isSaved = (s: unknown): s is Saved => typeof s === "object" && s !== null && typeof (s as Saved).name === "string" && typeof (s as Saved).filter === "string";

/** A filter is saved once, and a name stands for one filter: the last. */
export const withSaved = (all: readonly Saved[], one: Saved): Saved[] => [...all.filter((s) => s.name !== one.name && s.filter !== one.filter), one].slice(-maxSaved);

export function load(): Saved[] {
  try {
    return readSaved(localStorage.getItem(key));
  } catch {
    return []; // no storage
  }
}

export function store(all: readonly Saved[]): void {
  try {
    localStorage.setItem(key, JSON.stringify(all));
  } catch {
    // no storage: they last as long as the page
  }
}
