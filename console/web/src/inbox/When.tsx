import { useSyncExternalStore, type ReactNode } from "react";

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

// One clock for all, that ticks as long as somebody looks.
const tick = 15_000;
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const l of listeners) l();
  }, tick);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

// A clock that nobody looked at has stood still.
function read(): number {
  if (listeners.size === 0 && Date.now() - now > tick) now = Date.now();
  return now;
}

/** A time in the words of now, with the whole of it beside. */
export function When({ at }: { at: string }): ReactNode {
  const seconds = (Date.parse(at) - useSyncExternalStore(subscribe, read)) / 1000;
  if (!Number.isFinite(seconds)) return <span>{at}</span>;
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? ["second", 1];
  return (
    <time dateTime={at} title={at}>
      {relative.format(Math.round(seconds / size), unit)}
    </time>
  );
}
