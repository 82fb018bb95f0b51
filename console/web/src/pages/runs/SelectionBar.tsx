import { useState, type ReactNode } from "react";
import type { RunRow } from "../../api/model";
import { useMay } from "../../api/session";
import { actions, count, type Action } from "./bulk";
import { BulkDialog, type Target } from "./BulkDialog";
import type { Selection } from "./selection";
import type { Counts } from "./StatusTabs";

type Props = { selection: Selection; rows: RunRow[]; filter: string; status: string | undefined; counts: Counts | undefined };

/** Selects runs, and offers what can be done to them. */
export function SelectionBar({ selection, rows, filter, status, counts }: Props): ReactNode {
  const [asked, ask] = useState<{ action: Action; target: Target }>();
  const [everything, setEverything] = useState(false);
  const may: { [action in Action]: boolean } = {
    cancel: useMay(...actions.cancel.scopes),
    retry: useMay(...actions.retry.scopes),
    delete: useMay(...actions.delete.scopes),
    annotate: useMay(...actions.annotate.scopes),
    export: useMay(...actions.export.scopes),
  };
  const chosen = rows.filter((row) => selection.has(row.runId));
  if (!selection.on) {
    return (
      <p className="selecting">
        <button type="button" className="quiet" onClick={selection.begin}>
          Select runs…
        </button>
      </p>
    );
  }
  const total = counts && (status ? counts.of(status) : counts.total);
  const all = total === undefined ? "all matching runs" : `all ${total.toLocaleString("en")}${counts?.truncated ? "+" : ""} matching runs`;
  const whole = chosen.length === rows.length && rows.length > 0;
  const end = (): void => {
    setEverything(false);
    selection.end();
  };
  return (
    <div className="selecting" role="group" aria-label="Selected runs">
      <button
        type="button"
        onClick={() => {
          setEverything(false);
          selection.set(rows, !whole);
        }}
      >
        {whole ? "Select none" : `Select all ${rows.length} shown`}
      </button>
      {total !== undefined && total > rows.length && (
        <button type="button" aria-pressed={everything} onClick={() => setEverything(!everything)}>
          Select {all}
        </button>
      )}
      {(Object.keys(actions) as Action[])
        .filter((action) => may[action])
        .map((action) => {
          const { verb, fits } = actions[action];
          const n = chosen.filter(fits).length;
          const danger = action === "cancel" || action === "delete";
          return (
            <button
              key={action}
              type="button"
              className={danger ? "danger" : undefined}
              disabled={!everything && n === 0}
              onClick={() => ask({ action, target: everything ? { filter, about: all } : { rows: chosen } })}
            >
              {verb} {everything ? "all" : count(n)}…
            </button>
          );
        })}
      <button type="button" className="quiet" onClick={end}>
        Done
      </button>
      {asked && (
        <BulkDialog
          action={asked.action}
          target={asked.target}
          onClose={(done) => {
            ask(undefined);
            if (done) end();
          }}
        />
      )}
    </div>
  );
}
