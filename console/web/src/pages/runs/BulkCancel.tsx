import { useMutation } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { Link } from "wouter";
import { api, body, idempotencyKey } from "../../api/client";
import type { RunRow } from "../../api/model";
import type { components } from "../../api/schema";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { count, tally } from "./bulk";
import { Name } from "../../ui/Text";

type Result = components["schemas"]["BulkCancelResult"];

type Props = { rows: RunRow[]; onClose: (done: boolean) => void };

// The host's limit per request.
const atOnce = 100;

/** Cancels several runs after a confirmation, and shows each result. */
export function BulkCancel({ rows, onClose }: Props): ReactNode {
  const id = useId();
  const [reason, setReason] = useState("");
  const [results, setResults] = useState<Result[]>([]);
  const [keys] = useState(() => Array.from({ length: Math.ceil(rows.length / atOnce) }, idempotencyKey));
  const send = useMutation({
    mutationFn: async () => {
      const outcomes: Result[] = [];
      for (const [i, key] of keys.entries()) {
        const runIds = rows.slice(i * atOnce, (i + 1) * atOnce).map((row) => row.runId);
        const given = reason.trim() ? { reason: reason.trim() } : {};
        outcomes.push(...(await body(api.POST("/v1/runs:bulk-cancel", { params: { header: { "Idempotency-Key": key } }, body: { runIds, ...given } }))).results);
        setResults([...outcomes]);
      }
      announce(tally(outcomes));
      return outcomes;
    },
  });
  const done = send.isSuccess;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!send.isPending) send.mutate();
  };
  const failed = results.filter((r) => !r.ok);
  return (
    <Dialog open onClose={() => onClose(results.length > 0)} title={`Cancel ${count(rows.length)}`}>
      <form onSubmit={submit} className="form">
        {results.length === 0 && (
          <>
            <p>The runs and their child runs end permanently. Completed effects are not undone.</p>
            <ul className="bulk" aria-label="Runs to cancel">
              {rows.slice(0, 10).map((row) => (
                <li key={row.runId}>
                  <Name text={row.workflowId} /> <span className="dim mono">{shortId(row.runId)}</span>
                </li>
              ))}
              {rows.length > 10 && <li>and {rows.length - 10} more</li>}
            </ul>
            <label htmlFor={id}>Reason (kept in each run&apos;s log)</label>
            <input id={id} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} autoComplete="off" />
          </>
        )}
        {results.length > 0 && <p className={failed.length > 0 ? "note ask" : "note good"}>{tally(results)}</p>}
        {failed.length > 0 && (
          <ul className="bulk" aria-label="Runs that were not cancelled">
            {failed.map((r) => (
              <li key={r.runId}>
                <Link href={`/runs/${r.runId}`}>{shortId(r.runId)}</Link>: <code>{r.error?.code}</code> {r.error?.message}
              </li>
            ))}
          </ul>
        )}
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={() => onClose(results.length > 0)}>
            {done ? "Close" : "Go back"}
          </button>
          {!done && (
            <button type="submit" className="primary destructive" disabled={send.isPending}>
              Cancel {count(rows.length)}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
