import { useWindowVirtualizer, type Range } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from "react";
import type { RunEvent } from "../../api/model";
import { announce } from "../../ui/announce";
import type { RunLog } from "../../live/runLog";
import { Name, Text } from "../../ui/Text";
import { escapeHidden } from "../../ui/escape";
import { clock, duration } from "../../ui/time";
import { useZone } from "../../ui/zone";
import { addRows, detailOf, everything, groupOf, groups, type Group, type Row, type RowFilter } from "./events";

// The content above changes its height while a past state is shown.
type Props = { log: RunLog; lookingBack: boolean; selected: number | undefined; onSelect: (seq: number) => void };

// All rows have the same height, so that a scroll position is a multiplication.
const narrow = "(max-width: 48rem)";
const heights = { wide: 30, narrow: 52 };
// Rows are added and removed in blocks of this size. While following a run, each removal at the top makes the browser
// lay out the whole table again.
const block = 10;

/** All events in order, as a virtualised table. */
export function EventTable({ log, lookingBack, selected, onSelect }: Props): ReactNode {
  const [filter, setFilter] = useState<RowFilter>(everything);
  const rows = useRows(log, filter);
  const table = useRef<HTMLTableElement>(null);
  return (
    <>
      <Filters log={log} filter={filter} onChange={setFilter} />
      {rows.length === 0 ? (
        <Nothing log={log} />
      ) : (
        <Rows log={log} live={!log.ended} lookingBack={lookingBack} rows={rows} table={table} selected={selected} onSelect={onSelect} />
      )}
    </>
  );
}

function Nothing({ log }: { log: RunLog }): ReactNode {
  if (log.events.length > 0) return <p className="empty">No matching events.</p>;
  if (log.state === "connecting") return <p className="loading">Loading events…</p>;
  return <p className="empty">Nothing has happened yet. Events appear here as they are recorded.</p>;
}

// Rows grow with the log; a new filter rebuilds them.
function useRows(log: RunLog, filter: RowFilter): Row[] {
  const kept = useMemo(() => ({ log, filter, rows: [] as Row[], upTo: 0 }), [log, filter]);
  if (kept.upTo < log.events.length) {
    addRows(kept.rows, log.events, kept.upTo, filter);
    kept.upTo = log.events.length;
  }
  return kept.rows;
}

function Filters({ log, filter, onChange }: { log: RunLog; filter: RowFilter; onChange: (filter: RowFilter) => void }): ReactNode {
  const counts = useCounts(log);
  const toggle = (group: Group): void => {
    const next = new Set(filter.groups);
    if (!next.delete(group)) next.add(group);
    onChange({ ...filter, groups: next });
  };
  const nodes = useNodes(log);
  return (
    <search className="event-filter">
      <input
        type="search"
        aria-label="Find in events"
        placeholder="Find in events"
        value={filter.text}
        onChange={(event) => onChange({ ...filter, text: event.target.value })}
      />
      {nodes.length > 1 && (
        <select aria-label="Node" value={filter.node} onChange={(event) => onChange({ ...filter, node: event.target.value })}>
          <option value="">All nodes</option>
          {nodes.map((node) => (
            <option key={node} value={node}>
              {escapeHidden(node)}
            </option>
          ))}
        </select>
      )}
      <div className="choices" role="group" aria-label="Event groups">
        {groups
          .filter((group) => counts.has(group))
          .map((group) => (
            <button key={group} type="button" className="choice" aria-pressed={filter.groups.has(group)} onClick={() => toggle(group)}>
              {group} <span className="dim">{counts.get(group)?.toLocaleString("en")}</span>
            </button>
          ))}
      </div>
      {counts.has("model") && (
        <label className="check small">
          <input type="checkbox" checked={filter.chunks} onChange={(event) => onChange({ ...filter, chunks: event.target.checked })} />
          each answer chunk
        </label>
      )}
    </search>
  );
}

function useNodes(log: RunLog): string[] {
  const kept = useMemo(() => ({ log, nodes: new Set<string>(), upTo: 0 }), [log]);
  for (; kept.upTo < log.events.length; kept.upTo++) {
    const node = log.events[kept.upTo]?.nodeId;
    if (node) kept.nodes.add(node);
  }
  return [...kept.nodes];
}

function useCounts(log: RunLog): Map<Group, number> {
  const kept = useMemo(() => ({ log, counts: new Map<Group, number>(), upTo: 0 }), [log]);
  for (; kept.upTo < log.events.length; kept.upTo++) {
    const group = groupOf((log.events[kept.upTo] as RunEvent).type);
    kept.counts.set(group, (kept.counts.get(group) ?? 0) + 1);
  }
  return kept.counts;
}

// live was computed with the rows. The log may have received its last events since then.
type RowsProps = Props & { live: boolean; rows: Row[]; table: RefObject<HTMLTableElement | null> };

function Rows({ log, live, lookingBack, rows, table, selected, onSelect }: RowsProps): ReactNode {
  const height = useRowHeight();
  const [active, setActive] = useState<number>();
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    const body = table.current?.tBodies[0];
    if (body) setMargin(body.getBoundingClientRect().top + window.scrollY);
  }, [table, height, lookingBack]);
  // The focused row stays rendered, even when scrolled away.
  const rangeExtractor = useCallback(
    (range: Range) => {
      const shown = inBlocks(range);
      return active === undefined || shown.includes(active) || active >= range.count ? shown : [...shown, active].sort((a, b) => a - b);
    },
    [active],
  );
  const virtual = useWindowVirtualizer({ count: rows.length, estimateSize: () => height, overscan: block, scrollMargin: margin, rangeExtractor });
  const items = virtual.getVirtualItems();
  useKeepInView(virtual, rows, selected);
  const news = useFollow(rows.length, live);
  const select = useSame(onSelect);

  const move = (to: number): void => {
    const next = Math.min(rows.length - 1, Math.max(0, to));
    setActive(next);
    virtual.scrollToIndex(next, { align: "auto" });
    focusRow(table, next);
  };
  const onKey = (event: KeyboardEvent): void => {
    const at = Number((event.target as HTMLElement).closest<HTMLElement>("[data-row]")?.dataset.row ?? active ?? 0);
    const page = Math.max(1, Math.floor(window.innerHeight / height) - 4);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  };
  const first = items[0];
  const last = items.at(-1);
  const total = virtual.getTotalSize();
  const zero = Date.parse(log.events[0]?.timestamp ?? "");
  return (
    <>
      <table ref={table} className="events" aria-rowcount={rows.length + 1} aria-label="Events" onKeyDown={onKey}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" className="num seq">
              #
            </th>
            <th scope="col" className="time">
              Time
            </th>
            <th scope="col" className="num delta">
              Since start
            </th>
            <th scope="col" className="type">
              Type
            </th>
            <th scope="col" className="node">
              Node
            </th>
            <th scope="col">Detail</th>
          </tr>
        </thead>
        <tbody>
          <Spacer height={first ? first.start - margin : 0} />
          {items.map((item, i) => {
            const row = rows[item.index] as Row;
            const before = items[i - 1];
            const gap = before && item.start > before.end ? item.start - before.end : 0;
            return [
              gap > 0 && <Spacer key={`gap-${item.index}`} height={gap} />,
              <EventRow
                key={item.index}
                row={row}
                index={item.index}
                log={log}
                zero={zero}
                selected={selected !== undefined && selected >= row.from && selected <= row.to}
                onFocus={setActive}
                onSelect={select}
              />,
            ];
          })}
          <Spacer height={last ? total - (last.end - margin) : 0} />
        </tbody>
      </table>
      {news > 0 && (
        <button type="button" className="news primary" onClick={() => move(rows.length - 1)}>
          {news.toLocaleString("en")} new {news === 1 ? "event" : "events"}
        </button>
      )}
    </>
  );
}

// The visible rows and a margin, aligned to blocks.
function inBlocks({ startIndex, endIndex, overscan, count }: Range): number[] {
  const from = Math.max(0, Math.floor((startIndex - overscan) / block) * block);
  const to = Math.min(count, Math.ceil((endIndex + 1 + overscan) / block) * block);
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function Spacer({ height }: { height: number }): ReactNode {
  return height > 0 ? <tr aria-hidden="true" className="spacer" style={{ height }} /> : null;
}

type RowProps = { row: Row; index: number; log: RunLog; zero: number; selected: boolean; onFocus: (index: number) => void; onSelect: (seq: number) => void };

// Unchanged rows are not rendered again, so a row follows the time zone itself.
const EventRow = memo(function EventRow({ row, index, log, zero, selected, onFocus, onSelect }: RowProps): ReactNode {
  useZone();
  const event = log.events[row.from] as RunEvent;
  const many = row.to - row.from + 1;
  return (
    <tr data-row={index} data-seq={event.sequence} aria-rowindex={index + 2} className={selected ? "selected" : undefined}>
      <td className="num seq">{many > 1 ? `${row.from}–${row.to}` : row.from}</td>
      <td className="time">{clock(event.timestamp)}</td>
      <td className="num delta">{duration(Date.parse(event.timestamp) - zero)}</td>
      <td className="type">
        <button type="button" className={`event-link g-${groupOf(event.type)}`} aria-pressed={selected} onFocus={() => onFocus(index)} onClick={() => onSelect(event.sequence)}>
          <Name text={event.type} />
          {many > 1 && <span className="dim"> ×{many}</span>}
        </button>
      </td>
      <td className="node">{event.nodeId && <Name text={event.nodeId} />}</td>
      <td className="detail">
        {event.contentTrust === "untrusted" && <span className="badge ask">untrusted</span>}
        <Text text={many > 1 ? joined(log, row) : detailOf(event)} />
      </td>
    </tr>
  );
});

// Joins the first chunks of an answer.
function joined(log: RunLog, row: Row): string {
  let out = "";
  for (let at = row.from; at <= row.to && out.length < 300; at++) out += String(log.events[at]?.payload.chunk ?? "");
  return out;
}

function focusRow(table: RefObject<HTMLTableElement | null>, index: number): void {
  // Two frames, because the row may have to be rendered first.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => table.current?.querySelector<HTMLElement>(`[data-row="${index}"] button`)?.focus({ preventScroll: true })),
  );
}

function useRowHeight(): number {
  const [isNarrow, set] = useState(() => matchMedia(narrow).matches);
  useEffect(() => {
    const query = matchMedia(narrow);
    const change = (): void => set(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return isNarrow ? heights.narrow : heights.wide;
}

// A stable function that calls the latest handler.
function useSame(call: (seq: number) => void): (seq: number) => void {
  const latest = useRef(call);
  useEffect(() => {
    latest.current = call;
  });
  return useCallback((seq) => latest.current(seq), []);
}

type Scroller = { scrollToIndex: (index: number, options: { align: "auto" | "end" | "center" }) => void };

// Scrolls to the selected event when the selection changes, not when rows are added.
function useKeepInView(virtual: Scroller, rows: readonly Row[], selected: number | undefined): void {
  const shown = useRef<number>(undefined);
  useEffect(() => {
    if (selected === undefined || shown.current === selected) return;
    const at = rows.findIndex((row) => selected <= row.to);
    if (at < 0) return;
    shown.current = selected;
    virtual.scrollToIndex(at, { align: "auto" });
  });
}

// Follows the end of a growing log. After scrolling up, returns the number of new rows.
function useFollow(length: number, live: boolean): number {
  const atEnd = useRef(false);
  const grown = useRef(length);
  const wasLive = useRef(live);
  const [left, setLeft] = useState<number>();
  useEffect(() => {
    const onScroll = (): void => {
      const root = document.documentElement;
      atEnd.current = root.scrollHeight - window.innerHeight - window.scrollY < 60;
      setLeft((at) => (atEnd.current ? undefined : (at ?? grown.current)));
    };
    // Measured before the table renders new rows, to avoid a forced layout.
    window.addEventListener("scroll", onScroll, { passive: true, capture: true });
    return () => window.removeEventListener("scroll", onScroll, { capture: true });
  }, []);
  useEffect(() => {
    const followed = wasLive.current; // includes the last event, after which live is false
    wasLive.current = live;
    if (grown.current === length) return;
    grown.current = length;
    if (followed && atEnd.current && window.scrollY > 0) window.scrollTo(0, document.documentElement.scrollHeight);
  }, [length, live]);
  const news = live && left !== undefined ? Math.max(0, length - left) : 0;
  useEffect(() => {
    if (news > 0) announce(`${news} new ${news === 1 ? "event" : "events"}`);
  }, [news]);
  return news;
}
