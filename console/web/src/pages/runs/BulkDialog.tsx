import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Link } from "wouter";
import type { RunRow } from "../../api/model";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name } from "../../ui/Text";
import { save } from "../run/export";
import { actions, atOnce, batch, count, most, mostExported, selectPage, send, tally, type Action, type Batch, type Result } from "./bulk";

/** The runs to change: rows, or all that a filter selects, with their number. */
export type Target = { rows: RunRow[] } | { filter: string; about: string };

type Props = { action: Action; target: Target; onClose: (done: boolean) => void };

/** What is left to do after an error: the batch that failed, and where to go on. */
type Rest = { batch?: Batch | undefined; rows: string[]; cursor?: string | undefined; more: boolean };

/** Changes several runs after a confirmation, and shows each result. After an error it goes on where it stopped. */
export function BulkDialog({ action, target, onClose }: Props): ReactNode {
  const id = useId();
  const kind = actions[action];
  const rows = "rows" in target ? target.rows.filter(kind.fits) : [];
  const limit = action === "export" ? mostExported : most;
  const [text, setText] = useState("");
  const [results, setResults] = useState<Result[]>([]);
  const [state, setState] = useState<"asking" | "working" | "stopped" | "done">("asking");
  const [error, setError] = useState<Error>();
  const rest = useRef<Rest>({ rows: rows.map((row) => row.runId), more: "filter" in target });
  const stop = useRef(false);
  const bundles = useRef<string[]>([]);

  const work = async (): Promise<void> => {
    stop.current = false;
    setState("working");
    setError(undefined);
    const all = [...results];
    const left = rest.current;
    try {
      while (!stop.current && all.length < limit) {
        if (!left.batch && "rows" in target) {
          left.batch = left.rows.length > 0 ? batch(left.rows.splice(0, atOnce)) : undefined;
        } else if (!left.batch && left.more && "filter" in target) {
          const page = await selectPage(action, target.filter, left.cursor);
          left.batch = { ...page.batch, ids: page.batch.ids.slice(0, limit - all.length) };
          left.cursor = page.next;
          left.more = page.next !== undefined;
        }
        if (!left.batch) break;
        if (left.batch.ids.length > 0) all.push(...(await send(action, left.batch, text.trim(), bundles.current)));
        left.batch = undefined;
        setResults([...all]);
      }
      const finished = !left.batch && left.rows.length === 0 && !left.more;
      setState(finished || all.length >= limit ? "done" : "stopped");
      announce(tally(action, all));
      if (bundles.current.length > 0 && !stop.current) save("runs.jsonl", "application/jsonl", [`${bundles.current.join("\n")}\n`]);
    } catch (cause) {
      setError(cause instanceof Error ? cause : new Error(String(cause)));
      setState("stopped");
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (state === "asking" || state === "stopped") void work();
  };
  const what = "rows" in target ? count(rows.length) : target.about;
  const failed = results.filter((r) => !r.ok);
  const begun = state !== "asking";
  return (
    <Dialog open onClose={() => onClose(begun)} title={`${kind.verb} ${what}`}>
      <form onSubmit={submit} className="form">
        {!begun && (
          <>
            <p>{kind.warning}</p>
            {"rows" in target ? <Chosen rows={rows} verb={kind.verb.toLowerCase()} /> : <Selected filter={target.filter} of={kind.of} limit={limit} />}
            {kind.text && (
              <>
                <label htmlFor={id}>{kind.text.label}</label>
                <input id={id} value={text} maxLength={kind.text.required ? 256 : 500} required={kind.text.required} onChange={(event) => setText(event.target.value)} autoComplete="off" />
              </>
            )}
          </>
        )}
        {begun && <p className={failed.length > 0 ? "note ask" : "note good"}>{state === "working" ? `${count(results.length)} so far…` : tally(action, results)}</p>}
        {state === "done" && results.length >= limit && <p className="small">The limit of {count(limit)} is reached. Repeat the action for the rest.</p>}
        {failed.length > 0 && <Failures results={failed} done={kind.done} />}
        {error && <ErrorNote error={error} />}
        <div className="form-end">
          {state === "working" && (
            <button type="button" onClick={() => (stop.current = true)}>
              Stop
            </button>
          )}
          {state !== "working" && (
            <button type="button" onClick={() => onClose(begun)}>
              {begun ? "Close" : "Go back"}
            </button>
          )}
          {state === "asking" && (
            <button type="submit" className={action === "cancel" || action === "delete" ? "primary destructive" : "primary"}>
              {kind.verb} {what}
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

function Chosen({ rows, verb }: { rows: RunRow[]; verb: string }): ReactNode {
  return (
    <ul className="bulk" aria-label={`Runs to ${verb}`}>
      {rows.slice(0, 10).map((row) => (
        <li key={row.runId}>
          <Name text={row.workflowId} /> <span className="dim mono">{shortId(row.runId)}</span>
        </li>
      ))}
      {rows.length > 10 && <li>and {rows.length - 10} more</li>}
    </ul>
  );
}

function Selected({ filter, of, limit }: { filter: string; of: string; limit: number }): ReactNode {
  return (
    <p>
      {of ? `The ${of} runs` : "All runs"} that match {filter ? <code>{filter}</code> : "no filter"}, newest first, {count(limit)} at most.
    </p>
  );
}

function Failures({ results, done }: { results: Result[]; done: string }): ReactNode {
  return (
    <ul className="bulk" aria-label={`Runs that were not ${done}`}>
      {results.slice(0, 100).map((r) => (
        <li key={r.runId}>
          <Link href={`/runs/${r.runId}`}>{shortId(r.runId)}</Link>: <code>{r.error?.code}</code> {r.error?.message}
        </li>
      ))}
      {results.length > 100 && <li>and {results.length - 100} more</li>}
    </ul>
  );
}
