import { useEffect, useRef, useState, type ReactNode } from "react";
import { Icon } from "../../ui/Icon";
import { Name } from "../../ui/Text";
import { duration } from "../../ui/time";
import { barLook, factsOf } from "./barWords";
import type { Bar, Row } from "./timeline";

/** A bar or mark under the pointer, or with the focus, and its place on the screen. Keys stay while a run adds rows. */
export type Hovered = { row: string; item: string; place: DOMRect };

// The pointer may move from the bar to its card.
const grace = 150;

export type Hover = { at: Hovered | undefined; over: (at: Hovered | undefined) => void };

/** What the card of facts is about. Escape and scrolling close it. */
export function useHover(): Hover {
  const [at, set] = useState<Hovered>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (!at) return undefined;
    const close = (event: Event): void => {
      if (!(event instanceof KeyboardEvent) || event.key === "Escape") set(undefined);
    };
    document.addEventListener("keydown", close);
    document.addEventListener("scroll", close, true);
    return () => {
      document.removeEventListener("keydown", close);
      document.removeEventListener("scroll", close, true);
    };
  }, [at]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const over = (next: Hovered | undefined): void => {
    clearTimeout(timer.current);
    if (next) set(next);
    else timer.current = setTimeout(() => set(undefined), grace);
  };
  return { at, over };
}

type Props = { hover: Hover; lane: Row; bar: Bar | undefined; words: string; total: number };

const gap = 6;
const room = 200;

/** The facts of a bar next to it. Its accessible name has them, too. */
export function BarCard({ hover, lane, bar, words, total }: Props): ReactNode {
  const { at, over } = hover;
  if (!at) return null;
  const { place } = at;
  const below = place.bottom + room < window.innerHeight;
  const left = Math.max(8, Math.min(place.left, window.innerWidth - 360));
  const style = below ? { left, top: place.bottom + gap } : { left, bottom: window.innerHeight - place.top + gap };
  const look = bar && barLook(bar.status);
  return (
    <div className={`bar-card ${look?.tone ?? ""}`} aria-hidden="true" style={style} onPointerEnter={() => over(at)} onPointerLeave={() => over(undefined)}>
      {bar && look ? (
        <>
          <strong>
            <Icon name={look.icon} />
            <Name text={lane.nodeId} />
          </strong>
          <dl>
            {facts(lane, bar, total).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <Name text={value} />
                </dd>
              </div>
            ))}
          </dl>
        </>
      ) : (
        <Name text={words} />
      )}
    </div>
  );
}

function facts(lane: Row, bar: Bar, total: number): [string, string][] {
  const took = (kind: Bar["parts"][number]["kind"]): number => bar.parts.filter((p) => p.kind === kind).reduce((sum, p) => sum + (p.to ?? total) - p.from, 0);
  const waited = took("wait");
  const called = took("call");
  return [
    ["Status", barLook(bar.status).word],
    ...(lane.typeId ? [["Type", lane.typeId] as [string, string]] : []),
    ...(bar.attempt > 0 ? [["Attempt", String(bar.attempt + 1)] as [string, string]] : []),
    ["Start", `${duration(bar.from)} after the run`],
    ["Duration", bar.to === undefined ? `${duration(total - bar.from)} so far` : duration(bar.to - bar.from)],
    ...(waited > 0 ? [["Waiting", duration(waited)] as [string, string]] : []),
    ...(called > 0 ? [["Model", duration(called)] as [string, string]] : []),
    ...factsOf(bar),
  ];
}
