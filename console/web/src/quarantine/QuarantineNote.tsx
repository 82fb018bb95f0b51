import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { api, idempotencyKey } from "../api/client";
import { useMay } from "../api/session";
import { announce } from "../ui/announce";
import { Ago } from "../ui/Ago";
import { Dialog } from "../ui/Dialog";
import { ErrorNote } from "../ui/ErrorNote";
import { dateTime } from "../ui/time";
import { damagedLog, quarantineKey, reasonWords, type QuarantinedRun } from "./host";
import "./quarantine.css";

/** Shows the quarantine of a run, its reason and the available actions. */
export function QuarantineNote({ run }: { run: QuarantinedRun }): ReactNode {
  const client = useQueryClient();
  const may = useMay("runs:cancel");
  const [ending, setEnding] = useState(false);
  const refresh = (): void => {
    void client.invalidateQueries({ queryKey: quarantineKey });
    void client.invalidateQueries({ queryKey: ["run", run.runId] });
  };
  const retry = useMutation({
    mutationFn: () => api.POST("/v1/quarantine/{runId}:retry", { params: { path: { runId: run.runId }, header: { "Idempotency-Key": idempotencyKey() } }, body: {} }),
    onSuccess: () => {
      announce("The run is back in the queue");
      refresh();
    },
  });
  return (
    <section className="note bad quarantine" aria-label="Quarantine">
      <p>
        <strong>Quarantined</strong> <code>{run.reason}</code> {reasonWords(run.reason)}
      </p>
      <p className="small dim">
        {run.since && (
          <>
            Since <Ago at={run.since} />.{" "}
          </>
        )}
        Next check {dateTime(run.nextCheckAt)}. Handed to a dispatcher {run.tries} {run.tries === 1 ? "time" : "times"}, checked {run.checks} {run.checks === 1 ? "time" : "times"}.
      </p>
      {may ? (
        <p className="ways">
          <button type="button" disabled={retry.isPending} onClick={() => retry.mutate()}>
            Retry now
          </button>{" "}
          {run.reason === damagedLog ? (
            <span className="small dim">The run cannot be ended: nothing can be appended to a damaged log.</span>
          ) : (
            <button type="button" className="danger" onClick={() => setEnding(true)}>
              End run…
            </button>
          )}
        </p>
      ) : (
        <p className="small dim">To retry or end the run, use a key with the scope runs:cancel.</p>
      )}
      {retry.error && <ErrorNote error={retry.error} />}
      {ending && <EndDialog runId={run.runId} onClose={() => setEnding(false)} onEnded={refresh} />}
    </section>
  );
}

function EndDialog({ runId, onClose, onEnded }: { runId: string; onClose: () => void; onEnded: () => void }): ReactNode {
  const id = useId();
  const [reason, setReason] = useState("");
  const [key] = useState(idempotencyKey);
  const send = useMutation({
    mutationFn: () =>
      api.POST("/v1/quarantine/{runId}:end", {
        params: { path: { runId }, header: { "Idempotency-Key": key } },
        body: reason.trim() ? { reason: reason.trim() } : {},
      }),
    onSuccess: () => {
      announce("The run was ended");
      onEnded();
      onClose();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!send.isPending) send.mutate();
  };
  return (
    <Dialog open onClose={onClose} title="End this run">
      <form onSubmit={submit} className="form">
        <p>The run ends as cancelled. This cannot be undone.</p>
        <label htmlFor={id}>Reason (kept in the run&apos;s log)</label>
        <input id={id} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} autoComplete="off" />
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Keep the run
          </button>
          <button type="submit" className="primary destructive" disabled={send.isPending}>
            End the run
          </button>
        </div>
      </form>
    </Dialog>
  );
}
