import { useState, type ReactNode } from "react";
import { consolePath } from "../../api/base";
import { isTerminal, type RunRow } from "../../api/model";
import { Ago } from "../../ui/Ago";
import { escapeHidden } from "../../ui/escape";
import { Name } from "../../ui/Text";
import { duration, useNow } from "../../ui/time";
import { count, money } from "../run/usage";
import type { Sort } from "./query";

/** The value of a column that a run does not have. */
export const none = "–";

/** A column that can be hidden, and by which the list can be sorted. */
export type Column = { id: string; name: string; sort: Sort; num: boolean; cell: (row: RunRow) => ReactNode };

export const columns: readonly Column[] = [
  { id: "node", name: "Last node", sort: "lastNode", num: false, cell: (row) => text(row.lastNode) },
  { id: "model", name: "Model", sort: "model", num: false, cell: (row) => text(row.model) },
  { id: "tokens", name: "Tokens", sort: "tokens", num: true, cell: tokens },
  { id: "cost", name: "Cost", sort: "cost", num: true, cell: (row) => (row.costUsd === undefined ? none : money(row.costUsd, "USD")) },
  { id: "waiting", name: "Waiting since", sort: "waitingSince", num: true, cell: (row) => (row.waitingSince ? <Ago at={row.waitingSince} /> : none) },
  { id: "created", name: "Created", sort: "created", num: true, cell: (row) => <Ago at={row.createdAt} /> },
  { id: "took", name: "Took", sort: "duration", num: true, cell: (row) => (row.startedAt && (row.completedAt || !isTerminal(row.status)) ? <Took row={row} from={row.startedAt} /> : none) },
];

export const standard: readonly string[] = ["model", "tokens", "cost", "created", "took"];

// The whole text is in the title: a narrow column cuts it.
function text(value: string | undefined): ReactNode {
  if (!value) return none;
  return (
    <span title={escapeHidden(value)}>
      <Name text={value} />
    </span>
  );
}

function tokens(row: RunRow): ReactNode {
  if (row.inputTokens === undefined || row.outputTokens === undefined) return none;
  const words = `${count(row.inputTokens)} in, ${count(row.outputTokens)} out`;
  return <span title={words}>{count(Number(row.inputTokens) + Number(row.outputTokens))}</span>;
}

function Took({ row, from }: { row: RunRow; from: string }): ReactNode {
  return row.completedAt ? duration(Date.parse(row.completedAt) - Date.parse(from)) : <Growing since={from} />;
}

function Growing({ since }: { since: string }): ReactNode {
  return (
    <>
      {duration(Math.max(0, useNow() - Date.parse(since)))}
      <span className="unseen"> so far</span>
    </>
  );
}

const key = `waybill.run-columns ${consolePath}`;

/** Reads the ids of the shown columns; the standard ones if none are stored. */
export function readColumns(stored: string | null): string[] {
  try {
    const all: unknown = JSON.parse(stored ?? "");
    if (Array.isArray(all)) return columns.map((c) => c.id).filter((id) => all.includes(id));
  } catch {
    // nothing, or nothing that this version has written
  }
  return [...standard];
}

export type Shown = { ids: string[]; columns: Column[]; has: (id: string) => boolean; toggle: (id: string) => void };

/** The columns of a saved view: its name, and their ids. */
export type OfView = { name: string; columns: readonly string[] };

/**
 * The shown columns: those of a saved view, or those kept in this browser. The column that the list is sorted by is
 * always shown.
 */
export function useColumns(sort: Sort, view?: OfView): Shown {
  const [own, setOwn] = useState(() => {
    try {
      return readColumns(localStorage.getItem(key));
    } catch {
      return [...standard]; // no storage
    }
  });
  // A change within a view lasts until another one is shown, or until it is saved.
  const [changed, change] = useState<OfView>();
  const ofView = view && view.columns.length > 0 ? view : undefined;
  const ids = ofView ? [...(changed?.name === ofView.name ? changed.columns : ofView.columns)] : own;
  return {
    ids,
    columns: columns.filter((c) => ids.includes(c.id) || (c.sort === sort && sort !== "created")),
    has: (id) => ids.includes(id),
    toggle: (id) => {
      const next = ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id];
      if (ofView) {
        change({ name: ofView.name, columns: next });
        return;
      }
      setOwn(next);
      try {
        localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // Without storage, the choice lasts until the page is closed.
      }
    },
  };
}

/** A menu of the columns. */
export function ColumnChoice({ shown }: { shown: Shown }): ReactNode {
  return (
    <details className="column-choice">
      <summary>Columns</summary>
      <fieldset>
        <legend className="unseen">Columns of the list</legend>
        {columns.map((c) => (
          <label key={c.id}>
            <input type="checkbox" checked={shown.has(c.id)} onChange={() => shown.toggle(c.id)} /> {c.name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}
