import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useId, useLayoutEffect, useRef, useState, type CSSProperties, type KeyboardEvent, type ReactNode, type SyntheticEvent } from "react";
import { useLocation } from "wouter";
import { useShortcuts } from "../../app/keys";
import type { RunView } from "../../ladder/model";
import { useIsRecorded } from "../../live/useRunLog";
import { Icon } from "../../ui/Icon";
import { lookOf } from "../../ui/Status";
import { kindLook, kindOf } from "../../workflows/definition";
import { BarCard, useHover, type Hovered } from "./BarCard";
import { barLook, factsOf, textOn } from "./barWords";
import { duration, useNow } from "../../ui/time";
import { busyIn, keysOf, rowsOf, startedIn, Scale, ticks, type Bar, type Lane, type Row, type Timeline } from "./timeline";
import { itemAt, itemKey, itemsOf, rowKey, type Item } from "./timelineItems";
import { useChildViews } from "./useChildViews";
import { Name } from "../../ui/Text";
import { escapeHidden } from "../../ui/escape";

type Props = { view: RunView; past: boolean; lookingBack: boolean; selected: number | undefined; onSelect: (seq: number) => void };

const rowHeight = 34;
const zooms = [1, 1.5, 2, 3, 5, 8, 12, 20, 40, 80];

/** The timeline: a lane per node, a bar per attempt. The events table has the same data. */
export function TimelineView({ view, past, lookingBack, selected, onSelect }: Props): ReactNode {
  const { timeline, createdAt, sequence } = view;
  const recorded = useIsRecorded();
  const [, navigate] = useLocation();
  const [nested, nest] = useState<ReadonlySet<string>>(new Set());
  const children = useChildViews(startedIn(nested), sequence);
  const [zoom, setZoom] = useState(0);
  const [fold, setFold] = useState(true);
  const help = useId();
  const open = timeline.run.to === undefined && !past;
  const now = useNow() - Date.parse(createdAt);
  const total = open ? Math.max(timeline.last, now) : timeline.last;
  const rows = rowsOf(view, nested, children);
  const scale = new Scale(total, busyIn({ ...timeline, lanes: rows }, total), fold);
  const change = (by: number): void => setZoom((z) => Math.min(zooms.length - 1, Math.max(0, z + by)));
  useShortcuts([
    { keys: "+", does: "Zoom in", run: () => change(1) },
    { keys: "-", does: "Zoom out", run: () => change(-1) },
    { keys: "0", does: "Show the whole run", run: () => setZoom(0) },
  ]);
  const toggle = (lane: Row): void => {
    const next = new Set(nested);
    for (const key of keysOf(lane)) {
      if (lane.opened) next.delete(key);
      else next.add(key);
    }
    nest(next);
  };
  if (sequence < 0) return <p className="empty">Nothing has happened yet. Bars appear here as nodes start.</p>;
  return (
    <>
      <div className="tl-tools">
        <button type="button" className="quiet" onClick={() => change(-1)} disabled={zoom === 0} aria-label="Zoom out" title="Zoom out (-)">
          <Icon name="minus" />
        </button>
        <button type="button" className="quiet" onClick={() => change(1)} disabled={zoom === zooms.length - 1} aria-label="Zoom in" title="Zoom in (+)">
          <Icon name="plus" />
        </button>
        <button type="button" className="quiet" onClick={() => setZoom(0)} aria-label="Show the whole run" title="Show the whole run (0)">
          <Icon name="fit" />
        </button>
        <label className="check small">
          <input type="checkbox" checked={fold} onChange={(event) => setFold(event.target.checked)} /> hide idle time
        </label>
        <Legend />
        <span id={help} className="unseen">
          Arrow keys move between nodes and bars, Enter opens one. The events table shows the same data as text.
        </span>
      </div>
      <Lanes
        timeline={timeline}
        rows={rows}
        onToggle={recorded ? undefined : toggle}
        onSelectIn={(runId, seq) => navigate(`/runs/${encodeURIComponent(runId)}?e=${seq}`)}
        lookingBack={lookingBack} scale={scale} total={total} zoom={zooms[zoom] ?? 1} selected={selected}
        onSelect={onSelect}
        describedBy={help}
      />
    </>
  );
}

const legend = [
  { part: "wait", word: "waiting" },
  { part: "call", word: "model call" },
  { part: "work", word: "working" },
] as const;

// Bars use the colour of their status; the legend explains patterns.
function Legend(): ReactNode {
  return (
    <ul className="legend" aria-label="Legend">
      {legend.map(({ part, word }) => (
        <li key={part}>
          <span className={`swatch idle ${part}`} aria-hidden="true" /> {word}
        </li>
      ))}
    </ul>
  );
}

// The rest of the width is for names.
const laneShare = 0.75;

type LanesProps = {
  timeline: Timeline;
  rows: Row[];
  /** Shows or hides the lanes of the runs that a lane's node started. */
  onToggle: ((lane: Row) => void) | undefined;
  onSelectIn: (runId: string, seq: number) => void;
  lookingBack: boolean; // the content above changes its height
  scale: Scale;
  total: number;
  zoom: number;
  selected: number | undefined;
  onSelect: (seq: number) => void;
  describedBy: string;
};

function Lanes({ timeline, rows: lanes, onToggle, onSelectIn, lookingBack, scale, total, zoom, selected, onSelect, describedBy }: LanesProps): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  const [laneWidth, setLaneWidth] = useState(1000);
  const [focus, setFocus] = useState({ row: 0, item: 0 });
  const hover = useHover();
  useLayoutEffect(() => {
    if (grid.current) setMargin(grid.current.getBoundingClientRect().top + window.scrollY);
  }, [lookingBack]);
  useLayoutEffect(() => {
    if (!box.current) return undefined;
    const observer = new ResizeObserver(([entry]) => setLaneWidth((entry?.contentRect.width ?? 0) * laneShare));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const rows: Row[] = [{ nodeId: "run", typeId: "", bars: [timeline.run], marks: timeline.marks, status: timeline.run.status, depth: 0 }, ...lanes];
  const virtual = useWindowVirtualizer({ count: rows.length, estimateSize: () => rowHeight, overscan: 10, scrollMargin: margin });
  const axis = axisOf(scale, total, zoom, laneWidth);
  const hovered = hover.at && itemAt(rows, hover.at);

  const onKey = (event: KeyboardEvent): void => {
    const to = moved(event.key, focus, rows);
    if (!to) return;
    event.preventDefault();
    setFocus(to);
    virtual.scrollToIndex(to.row, { align: "auto" });
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const cell = grid.current?.querySelector<HTMLElement>(`[data-cell="${to.row}-${to.item}"]`);
        cell?.focus({ preventScroll: true });
        cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
      }),
    );
  };
  return (
    <div className="tl" ref={box}>
      <div className="tl-inner" style={{ minWidth: `${zoom * 100}%` }}>
        <div className="tl-axis" aria-hidden="true">
          <span className="tl-name">since start</span>
          <div className="tl-lane">
            {axis.map((tick) => (
              <span key={tick.at} className={tick.folded ? "tick folded" : "tick"} style={{ left: `${tick.x * 100}%` }}>
                {tick.word}
              </span>
            ))}
          </div>
        </div>
        <div
          ref={grid}
          role="grid"
          aria-label="Timeline"
          aria-describedby={describedBy}
          aria-rowcount={rows.length}
          tabIndex={-1}
          onKeyDown={onKey}
          className="tl-grid"
          style={{ height: virtual.getTotalSize() }}
        >
          {scale.stretches
            .filter((s) => s.folded)
            .map((s) => (
              <div key={s.from} className="idle-gap" aria-hidden="true" style={{ "--x": s.start, "--w": s.size } as CSSProperties} />
            ))}
          {virtual.getVirtualItems().map((item) => {
            const lane = rows[item.index] as Row;
            const { runId } = lane;
            return (
              <LaneRow
                key={rowKey(lane)}
                lane={lane}
                index={item.index}
                top={item.start - margin}
                scale={scale}
                total={total}
                px={laneWidth * zoom}
                focus={focus}
                selected={runId === undefined ? selected : undefined}
                onFocus={setFocus}
                onSelect={runId === undefined ? onSelect : (seq) => onSelectIn(runId, seq)}
                onToggle={onToggle}
                onHover={hover.over}
              />
            );
          })}
        </div>
      </div>
      {hovered && <BarCard hover={hover} lane={hovered.row} bar={hovered.item.kind === "bar" ? hovered.item.bar : undefined} words={wordsOf(hovered.row, hovered.item, total)} total={total} />}
    </div>
  );
}

type Focus = { row: number; item: number };

function moved(key: string, { row, item }: Focus, rows: readonly Lane[]): Focus | undefined {
  const last = rows.length - 1;
  const inRow = (r: number): number => itemsOf(rows[r] as Lane).length - 1;
  switch (key) {
    case "ArrowRight":
      return { row, item: Math.min(inRow(row), item + 1) };
    case "ArrowLeft":
      return { row, item: Math.max(0, item - 1) };
    case "ArrowDown":
      return { row: Math.min(last, row + 1), item: 0 };
    case "ArrowUp":
      return { row: Math.max(0, row - 1), item: 0 };
    case "Home":
      return { row: 0, item: 0 };
    case "End":
      return { row: last, item: 0 };
    default:
      return undefined;
  }
}

type LaneProps = {
  lane: Row;
  onToggle: ((lane: Row) => void) | undefined;
  index: number;
  top: number;
  scale: Scale;
  total: number;
  /** The width of a lane in pixels. */
  px: number;
  focus: Focus;
  selected: number | undefined;
  onFocus: (focus: Focus) => void;
  onSelect: (seq: number) => void;
  onHover: (at: Hovered | undefined) => void;
};

function LaneRow({ lane, onToggle, index, top, scale, total, px, focus, selected, onFocus, onSelect, onHover }: LaneProps): ReactNode {
  const look = lookOf(lane.status);
  const note = index > 0 ? noteAfter(lane, scale, total, px) : undefined;
  return (
    <div role="row" aria-rowindex={index + 1} className={index === 0 ? "tl-row whole" : "tl-row"} style={{ transform: `translateY(${top}px)` }}>
      <div role="rowheader" className="tl-name" style={{ "--depth": lane.depth } as CSSProperties} title={escapeHidden(lane.typeId ? `${lane.nodeId} (${lane.typeId})` : lane.nodeId)}>
        <span className={look.tone}>
          <Icon name={look.icon} />
          <span className="unseen">{look.word}: </span>
        </span>
        {onToggle && keysOf(lane).length > 0 && (
          <button type="button" className="quiet fold" aria-expanded={lane.opened ?? false} aria-label={escapeHidden(lane.whole === undefined ? `Runs of ${lane.nodeId}` : `Nodes of ${lane.nodeId}`)} onClick={() => onToggle(lane)}>
            <Icon name={lane.opened ? "down" : "right"} />
          </button>
        )}
        {lane.typeId && (
          <span className="kind" title={kindLook[kindOf(lane.typeId)].word}>
            <Icon name={kindLook[kindOf(lane.typeId)].icon} />
          </span>
        )}
        <b>
          <Name text={lane.nodeId} />
        </b>{" "}
        <span className="dim">{lane.typeId && <Name text={lane.typeId} />}</span>
      </div>
      {itemsOf(lane).map((item, i) => {
        const here = focus.row === index && focus.item === i;
        const left = scale.at(item.at);
        const width = item.kind === "bar" ? scale.at(item.bar.to ?? total) - left : 0;
        const tone = item.kind === "bar" ? barLook(item.bar.status).tone : item.mark.tone;
        const asked = item.kind === "bar" && item.bar.usage !== undefined;
        const over = (event: SyntheticEvent<HTMLElement>): void => onHover({ row: rowKey(lane), item: itemKey(item), place: event.currentTarget.getBoundingClientRect() });
        return (
          <div
            key={itemKey(item)}
            role="gridcell"
            data-cell={`${index}-${i}`}
            tabIndex={here ? 0 : -1}
            aria-label={escapeHidden(wordsOf(lane, item, total))}
            aria-selected={selected === item.seq}
            className={`${item.kind} ${tone}${asked ? " asked" : ""}`}
            style={{ "--x": left, "--w": width } as CSSProperties}
            onFocus={(event) => {
              onFocus({ row: index, item: i });
              if (event.currentTarget.matches(":focus-visible")) over(event);
            }}
            onBlur={() => onHover(undefined)}
            onPointerEnter={(event) => event.pointerType === "mouse" && over(event)}
            onPointerLeave={() => onHover(undefined)}
            onClick={() => onSelect(item.seq)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" && event.key !== " ") return;
              event.preventDefault();
              onSelect(item.seq);
            }}
          >
            {item.kind === "bar" ? (
              <>
                <Parts bar={item.bar} total={total} scale={scale} left={left} width={width} />
                {index > 0 && width * px >= least && <BarText lane={lane} bar={item.bar} total={total} room={clearOf(lane.marks.map((m) => (scale.at(m.at) - left) * px), width * px)} />}
              </>
            ) : (
              <Sign sign={item.mark.sign} />
            )}
          </div>
        );
      })}
      {note && (
        <span className="bar-note" data-text={escapeHidden(note.text)} style={{ "--x": note.x } as CSSProperties} />
      )}
    </div>
  );
}

// A bar narrower than this has its text after it, if there is that much room for it. In pixels.
const least = 90;
const roomOfNote = 150;

/** Returns the text after the last bar of a lane, if the bar is too narrow for it. */
function noteAfter(lane: Lane, scale: Scale, total: number, px: number): { x: number; text: string } | undefined {
  const bar = lane.bars.at(-1);
  if (!bar) return undefined;
  const from = scale.at(bar.from);
  const to = scale.at(bar.to ?? total);
  const marked = lane.marks.some((m) => scale.at(m.at) * px > to * px - 24);
  if ((to - from) * px >= least || (1 - to) * px < roomOfNote || marked) return undefined;
  return { x: Math.max(to, from + 6 / px), text: textOn(lane.nodeId, bar, total, (1 - to) * px) };
}

// The width of a mark, about, in pixels.
const markWidth = 34;

type Room = { left: number; maxWidth: number };

function BarText({ lane, bar, total, room }: { lane: Row; bar: Bar; total: number; room: Room }): ReactNode {
  const text = textOn(lane.nodeId, bar, total, room.maxWidth);
  return text && <span className={bar.parts.every((p) => p.kind === "wait") ? "bar-text on-wait" : "bar-text"} style={room} data-text={escapeHidden(text)} />;
}

/** Keeps the text of a bar clear of the marks on it, which are at these distances from its start. */
function clearOf(marks: number[], width: number): Room {
  const starts = marks.filter((x) => Math.abs(x) < markWidth / 2).length > 0 ? markWidth : 0;
  const next = Math.min(width, ...marks.filter((x) => x >= markWidth / 2));
  return { left: starts, maxWidth: Math.max(0, next - starts) };
}

/** The sign of a mark. Fonts often lack that of a fork. */
function Sign({ sign }: { sign: string }): ReactNode {
  return sign === "⑂" ? <Icon name="fork" /> : <Name text={sign} />;
}

function Parts({ bar, total, scale, left, width }: { bar: Bar; total: number; scale: Scale; left: number; width: number }): ReactNode {
  return bar.parts.map((part) => {
    const from = scale.at(part.from);
    const to = scale.at(part.to ?? total);
    const place = width > 0 ? { left: percent((from - left) / width), width: percent((to - from) / width) } : { left: 0, width: "100%" };
    return <span key={`${part.kind}${part.from}`} className={`part ${part.kind}`} style={place} />;
  });
}

function percent(share: number): string {
  return `${share * 100}%`;
}

function wordsOf(lane: Lane, item: Item, total: number): string {
  const when = `${duration(item.at)} after the run was created`;
  if (item.kind === "mark") return `${lane.nodeId}: ${item.mark.words}, ${when}`;
  const { bar } = item;
  const word = barLook(bar.status).word.toLowerCase();
  const attempt = bar.attempt > 0 ? `, attempt ${bar.attempt + 1}` : "";
  const took = bar.to === undefined ? `for ${duration(total - bar.from)} so far` : duration(bar.to - bar.from);
  const facts = factsOf(bar).map(([name, value]) => `, ${name.toLowerCase()}: ${value}`).join("");
  return `${lane.nodeId}${attempt}: ${word}, ${took}, ${when}${facts}`;
}

type Tick = { at: number; x: number; word: string; folded: boolean };

// Approximate share of a lane that a tick label needs; narrower on a phone.
const wordWidth = 72;

function axisOf(scale: Scale, total: number, zoom: number, width: number): Tick[] {
  const space = wordWidth / Math.max(wordWidth, width * zoom);
  const folded = scale.stretches.filter((s) => s.folded).map((s) => ({ at: s.from, x: s.start + s.size / 2, word: `⋯ ${duration(s.to - s.from)}`, folded: true }));
  const kept = scale.stretches.filter((s) => !s.folded);
  const shown = kept.reduce((sum, s) => sum + s.to - s.from, 0);
  const out: Tick[] = [];
  for (const s of kept) {
    const about = Math.max(1, ((s.to - s.from) / Math.max(1, shown)) / space / 1.4);
    for (const at of ticks(s.from, s.to, about)) {
      const x = scale.at(at);
      const clear = [...out, ...folded].every((tick) => Math.abs(x - tick.x) > space) && x < 1 - space / 3;
      if (clear && at <= total) out.push({ at, x, word: at === 0 ? "0" : duration(at), folded: false });
    }
  }
  return [...out, ...folded];
}
