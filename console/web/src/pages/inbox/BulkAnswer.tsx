import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Link } from "wouter";
import type { Item } from "../../inbox/host";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name } from "../../ui/Text";
import { answerAll, begin, nameOf, summary, type BulkAction, type Outcome } from "./bulk";

const words = { accept: { verb: "Accept", danger: false }, reject: { verb: "Reject", danger: true } } as const;

const many = (n: number): string => `${n} ${n === 1 ? "question" : "questions"}`;

/** Gives several questions the same answer after a confirmation, and shows each result. */
export function BulkAnswer({ action, items, onClose }: { action: BulkAction; items: Item[]; onClose: (done: boolean) => void }): ReactNode {
  const id = useId();
  const [comment, setComment] = useState("");
  const [outcomes, setOutcomes] = useState<Outcome[]>(() => begin(items));
  const [state, setState] = useState<"asking" | "working" | "stopped" | "done">("asking");
  const [error, setError] = useState<Error>();
  const stop = useRef(false);
  const { verb, danger } = words[action];

  const work = async (): Promise<void> => {
    stop.current = false;
    setState("working");
    setError(undefined);
    let latest = outcomes;
    try {
      await answerAll(
        outcomes,
        action,
        comment.trim(),
        (all) => {
          latest = all;
          setOutcomes(all);
        },
        () => stop.current,
      );
      setState(latest.some((o) => o.state === "waiting") ? "stopped" : "done");
      announce(summary(latest));
    } catch (cause) {
      setError(cause instanceof Error ? cause : new Error(String(cause)));
      setState("stopped");
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (state === "asking" || state === "stopped") void work();
  };
  const begun = state !== "asking";
  const failed = outcomes.filter((o) => o.state === "failed");
  return (
    <Dialog open onClose={() => onClose(begun)} title={`${verb} ${many(items.length)}`}>
      <form onSubmit={submit} className="form">
        {!begun && (
          <>
            <ul className="bulk" aria-label={`Questions to ${action}`}>
              {items.slice(0, 20).map((item) => (
                <li key={item.question.interruptId}>
                  <Name text={nameOf(item)} /> <span className="dim"><Name text={item.workflowId} /></span>
                </li>
              ))}
              {items.length > 20 && <li>and {items.length - 20} more</li>}
            </ul>
            <label htmlFor={id}>Comment (recorded with each answer)</label>
            <textarea id={id} rows={2} value={comment} maxLength={4096} onChange={(event) => setComment(event.target.value)} />
          </>
        )}
        {begun && <p className={failed.length > 0 ? "note ask" : "note good"}>{summary(outcomes)}</p>}
        {failed.length > 0 && (
          <ul className="bulk" aria-label="Questions that were not answered">
            {failed.map(({ item, error: why }) => (
              <li key={item.question.interruptId}>
                <Link href={`/runs/${encodeURIComponent(item.runId)}`}>
                  <Name text={nameOf(item)} />
                </Link>
                : <code>{why?.code}</code> <Name text={why?.message ?? ""} />
              </li>
            ))}
          </ul>
        )}
        {error && <ErrorNote error={error} />}
        <div className="form-end">
          {state === "working" ? (
            <button type="button" onClick={() => (stop.current = true)}>
              Stop
            </button>
          ) : (
            <button type="button" onClick={() => onClose(begun)}>
              {begun ? "Close" : "Go back"}
            </button>
          )}
          {state === "asking" && (
            <button type="submit" className={danger ? "primary destructive" : "primary"}>
              {verb} {many(items.length)}
            </button>
          )}
          {state === "stopped" && (
            <button type="submit" className="primary">
              Continue
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
