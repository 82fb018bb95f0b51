import { useId, useState, type FormEvent, type ReactNode } from "react";
import { ApiError } from "../api/errors";
import { announce } from "../ui/announce";
import { Dialog } from "../ui/Dialog";
import { ErrorNote } from "../ui/ErrorNote";
import { Icon } from "../ui/Icon";
import { Name } from "../ui/Text";
import { useAssign, useSubject } from "./assign";
import type { Item } from "./host";
import { When } from "./When";

/** Who takes care of a question, with the buttons that change it. */
export function Assignee({ item, known }: { item: Item; known: readonly string[] }): ReactNode {
  const { assign, release } = useAssign();
  const me = useSubject();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [choosing, choose] = useState(false);
  const { assignment } = item;
  const mine = assignment !== undefined && assignment.assignee === me;
  const change = async (work: () => Promise<void>, words: string): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      announce(words);
    } catch (cause) {
      setError(cause);
    } finally {
      setBusy(false);
    }
  };
  const claim = (replace: boolean): void => void change(() => assign(item, undefined, replace), "The question is assigned to you");
  return (
    <section className="assignee" aria-label="Assignee">
      <div className="assignee-row">
        <span className="small">
          <Icon name="person" />{" "}
          {assignment ? (
            <>
              Assigned to {mine ? <strong>you</strong> : <strong><Name text={assignment.assignee} /></strong>}
              {assignment.assignedBy !== assignment.assignee && <> by {assignment.assignedBy === me ? "you" : <Name text={assignment.assignedBy} />}</>}, <When at={assignment.assignedAt} />
            </>
          ) : (
            <span className="dim">Not assigned</span>
          )}
        </span>
        <span className="assignee-ways">
          {!assignment && (
            <button type="button" data-claim disabled={busy} onClick={() => claim(false)}>
              Claim
            </button>
          )}
          {assignment && !mine && (
            <button type="button" data-claim disabled={busy} onClick={() => claim(true)}>
              Take over
            </button>
          )}
          {assignment && (
            <button type="button" data-claim disabled={busy} onClick={() => void change(() => release(item), "The question is not assigned any more")}>
              Release
            </button>
          )}
          <button type="button" disabled={busy} onClick={() => choose(true)}>
            Assign…
          </button>
        </span>
      </div>
      {error !== undefined && (isTaken(error) ? <Taken error={error} onTake={() => claim(true)} /> : <ErrorNote error={error} />)}
      {choosing && (
        <Choose
          known={known}
          onClose={() => choose(false)}
          onChoose={(name) => {
            choose(false);
            void change(() => assign(item, name, true), `The question is assigned to ${name}`);
          }}
        />
      )}
    </section>
  );
}

const isTaken = (error: unknown): error is ApiError => error instanceof ApiError && error.code === "conflict";

/** Another person was faster. The row above shows who it is as soon as it is read again. */
function Taken({ error, onTake }: { error: ApiError; onTake: () => void }): ReactNode {
  const who = error.details?.assignee;
  return (
    <div className="note ask" role="alert">
      <p>
        <strong>{typeof who === "string" ? <Name text={who} /> : "Another person"} has claimed this question in the meantime.</strong> Choose another question, or take this one over.
      </p>
      <button type="button" onClick={onTake}>
        Take over
      </button>
    </div>
  );
}

function Choose({ known, onClose, onChoose }: { known: readonly string[]; onClose: () => void; onChoose: (name: string) => void }): ReactNode {
  const id = useId();
  const [name, setName] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== "") onChoose(name.trim());
  };
  return (
    <Dialog open onClose={onClose} title="Assign the question">
      <form className="form" onSubmit={submit}>
        <label htmlFor={id}>User, or id of a key</label>
        <input id={id} value={name} list={`${id}known`} maxLength={256} pattern="[!-~]+" title="Letters, digits and signs without spaces" required onChange={(event) => setName(event.target.value)} autoComplete="off" spellCheck={false} />
        <datalist id={`${id}known`}>
          {known.map((k) => (
            <option key={k}>{k}</option>
          ))}
        </datalist>
        <p className="dim small">An assignee gets no further rights: the gate decides who may answer.</p>
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="submit" className="primary">
            Assign
          </button>
        </div>
      </form>
    </Dialog>
  );
}
