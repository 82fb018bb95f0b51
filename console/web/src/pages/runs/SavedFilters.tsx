import { useId, useState, type FormEvent, type ReactNode } from "react";
import { Link } from "wouter";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { load, store, withSaved, type Saved } from "./saved";

type Props = { filter: string; url: (filter: string) => string };

/** The named filters of this browser, and a form to save the current one. */
export function SavedFilters({ filter, url }: Props): ReactNode {
  const [all, setAll] = useState(load);
  const [naming, name] = useState(false);
  const keep = (next: Saved[], words: string): void => {
    store(next);
    setAll(next);
    announce(words);
  };
  const known = all.some((s) => s.filter === filter);
  if (all.length === 0 && filter === "") return null;
  return (
    <div className="saved">
      {all.length > 0 && (
        <ul className="choices" aria-label="Saved filters">
          {all.map((s) => (
            <li key={s.name}>
              <Link href={url(s.filter)} aria-current={s.filter === filter ? "true" : undefined} title={s.filter}>
                {s.name}
              </Link>
              {s.filter === filter && (
                <button type="button" className="quiet" aria-label={`Forget the filter ${s.name}`} onClick={() => keep(all.filter((other) => other !== s), `Forgot the filter ${s.name}`)}>
                  <Icon name="cross" />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {filter !== "" && !known && (
        <button type="button" className="quiet" onClick={() => name(true)}>
          Save this filter…
        </button>
      )}
      {naming && (
        <Naming
          filter={filter}
          onClose={() => name(false)}
          onName={(given) => {
            name(false);
            keep(withSaved(all, { name: given, filter }), `Saved the filter ${given}`);
          }}
        />
      )}
    </div>
  );
}

function Naming({ filter, onClose, onName }: { filter: string; onClose: () => void; onName: (name: string) => void }): ReactNode {
  const id = useId();
  const [name, setName] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== "") onName(name.trim());
  };
  return (
    <Dialog open onClose={onClose} title="Save this filter">
      <form className="form" onSubmit={submit}>
        <p>
          <code>{filter}</code> is kept in this browser, for you.
        </p>
        <label htmlFor={id}>Name</label>
        <input id={id} value={name} maxLength={40} required onChange={(event) => setName(event.target.value)} autoComplete="off" />
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="submit" className="primary">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
