import { useId, useState, type FormEvent, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { escapeHidden } from "../../ui/escape";
import { Icon } from "../../ui/Icon";
import { Name } from "../../ui/Text";
import { viewURL, type View } from "./query";
import { addressOf, differs, nameOf, useViewChanges, type SavedView } from "./views";

type Props = { views: readonly SavedView[]; current: SavedView | undefined; shown: View; columns: readonly string[]; plain: boolean };

/** The most views that are shown next to each other. The others are in a menu. */
const inRow = 8;

/** The saved views that the key sees, and what can be done with the current one. */
export function SavedViews({ views, current, shown, columns, plain }: Props): ReactNode {
  const [editing, edit] = useState<"new" | "edit">();
  const changes = useViewChanges();
  const [error, setError] = useState<unknown>();
  const [, navigate] = useLocation();
  const changed = current !== undefined && differs(current, shown, columns);
  const update = async (view: SavedView): Promise<void> => {
    setError(undefined);
    try {
      await changes.save({ viewId: view.viewId, name: view.name, shared: view.shared, shown, columns });
      announce(`Saved the view ${view.name}`);
    } catch (cause) {
      setError(cause);
    }
  };
  if (views.length === 0 && plain) return null;
  const row = views.slice(0, inRow);
  if (current && !row.includes(current)) row.splice(-1, 1, current);
  const rest = views.filter((v) => !row.includes(v));
  return (
    <div className="saved">
      {views.length > 0 && (
        <ul className="choices" aria-label="Saved views">
          {row.map((v) => (
            <Choice key={nameOf(v)} view={v} current={v === current} />
          ))}
        </ul>
      )}
      {rest.length > 0 && (
        <details className="more-views">
          <summary>{rest.length} more</summary>
          <ul aria-label="More saved views">
            {rest.map((v) => (
              <Choice key={nameOf(v)} view={v} current={false} />
            ))}
          </ul>
        </details>
      )}
      {current?.mine && changed && (
        <button type="button" onClick={() => void update(current)}>
          Save changes
        </button>
      )}
      {current?.mine && (
        <button type="button" className="quiet" onClick={() => edit("edit")}>
          Edit view…
        </button>
      )}
      {(current ? changed || !current.mine : !plain) && (
        <button type="button" className="quiet" onClick={() => edit("new")}>
          {current ? "Save as a new view…" : "Save this view…"}
        </button>
      )}
      {error !== undefined && <ErrorNote error={error} />}
      {editing && (
        <EditView
          view={editing === "edit" ? current : undefined}
          shown={shown}
          columns={columns}
          onClose={(next) => {
            edit(undefined);
            if (next) navigate(next);
          }}
        />
      )}
    </div>
  );
}

function Choice({ view, current }: { view: SavedView; current: boolean }): ReactNode {
  return (
    <li>
      <Link href={addressOf(view)} aria-current={current ? "true" : undefined} title={escapeHidden(view.filter ?? "All runs")}>
        <Name text={view.name} />
        {view.mine ? view.shared && <Icon name="person" /> : <span className="dim"> by <Name text={view.owner} /></span>}
        {view.mine && view.shared && <span className="unseen">, shared</span>}
      </Link>
    </li>
  );
}

type EditProps = { view: SavedView | undefined; shown: View; columns: readonly string[]; onClose: (next?: string) => void };

/** Names a view, shares it, and deletes it. */
function EditView({ view, shown, columns, onClose }: EditProps): ReactNode {
  const id = useId();
  const changes = useViewChanges();
  const [name, setName] = useState(view?.name ?? "");
  const [shared, share] = useState(view?.shared ?? false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const work = async (change: () => Promise<string>): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      onClose(await change());
    } catch (cause) {
      setError(cause);
      setBusy(false);
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() === "" || busy) return;
    void work(async () => {
      const saved = await changes.save({
        viewId: view?.viewId, name: name.trim(), shared,
        // The dialog of a view changes its name only: what the list shows is saved with "Save changes".
        shown: view ? { filter: view.filter ?? "", sort: view.sort ?? "created", order: view.order ?? "desc" } : shown,
        columns: view ? view.columns : columns,
      });
      announce(`Saved the view ${saved.name}`);
      return view ? viewURL(shown) : addressOf(saved);
    });
  };
  const remove = (): void =>
    void work(async () => {
      await changes.remove(view?.viewId ?? "");
      announce(`Deleted the view ${view?.name ?? ""}`);
      return viewURL({ ...shown, saved: undefined });
    });
  return (
    <Dialog open onClose={() => onClose()} title={view ? "Edit view" : "Save this view"}>
      <form className="form" onSubmit={submit}>
        {!view && <p className="dim">A view keeps the filter, the order and the columns.</p>}
        <label htmlFor={id}>Name</label>
        <input id={id} value={name} maxLength={80} required onChange={(event) => setName(event.target.value)} autoComplete="off" />
        <label className="check">
          <input type="checkbox" checked={shared} onChange={(event) => share(event.target.checked)} />
          Share with everyone in this tenant
        </label>
        {error !== undefined && <ErrorNote error={error} />}
        <div className="form-end">
          {view && (
            <button type="button" className="danger push" onClick={remove} disabled={busy}>
              Delete view
            </button>
          )}
          <button type="button" onClick={() => onClose()}>
            Go back
          </button>
          <button type="submit" className="primary" disabled={busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
