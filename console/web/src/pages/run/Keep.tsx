import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api, body, idempotencyKey } from "../../api/client";
import type { components } from "../../api/schema";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name, Text } from "../../ui/Text";
import { dateTime } from "../../ui/time";

type Hold = components["schemas"]["Hold"];

// The list is by run id, and a host has few holds.
async function findHold(runId: string, signal: AbortSignal): Promise<Hold | null> {
  for (let cursor: string | undefined; ; ) {
    const page = await body(api.GET("/v1/holds", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } }, signal }));
    const found = page.holds.find((h) => h.runId === runId);
    if (found || !page.nextCursor) return found ?? null;
    cursor = page.nextCursor;
  }
}

/** Sets or removes the legal hold of a run. */
export function HoldDialog({ runId, onClose }: { runId: string; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const id = useId();
  const [reason, setReason] = useState("");
  const { data: hold, error } = useQuery({ queryKey: ["hold", runId], queryFn: ({ signal }) => findHold(runId, signal), staleTime: 0, refetchOnMount: "always" });
  const change = useMutation({
    mutationFn: async () => {
      if (hold) await api.DELETE("/v1/runs/{runId}/hold", { params: { path: { runId } } });
      else await api.POST("/v1/runs/{runId}/hold", { params: { path: { runId } }, body: { reason: reason.trim() } });
    },
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["hold", runId] });
      void client.invalidateQueries({ queryKey: ["holds"] });
      announce(hold ? "The legal hold was removed" : "The legal hold was set");
      onClose();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!change.isPending && hold !== undefined) change.mutate();
  };
  return (
    <Dialog open onClose={onClose} title={hold ? "Remove the legal hold" : "Set a legal hold"}>
      <form onSubmit={submit} className="form">
        {hold ? (
          <>
            <p>
              Set by <Name text={hold.heldBy} />, {dateTime(hold.since)}: <Text text={hold.reason} quoted />
            </p>
            <p>Without the hold, retention and requests can erase the run.</p>
          </>
        ) : (
          hold === null && (
            <>
              <p>The run is not erased as long as it has a hold: not by retention, and not on request.</p>
              <label htmlFor={id}>Reason (in the audit log)</label>
              <input id={id} required value={reason} maxLength={512} autoComplete="off" onChange={(event) => setReason(event.target.value)} />
            </>
          )
        )}
        {(error ?? change.error) && <ErrorNote error={(error ?? change.error) as Error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="submit" className="primary" disabled={change.isPending || hold === undefined}>
            {hold ? "Remove the hold" : "Set the hold"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Deletes a run that has ended, after a confirmation that shows its workflow and id. */
export function DeleteDialog({ runId, workflowId, onClose }: { runId: string; workflowId: string; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [key] = useState(idempotencyKey);
  const erase = useMutation({
    mutationFn: () => api.DELETE("/v1/runs/{runId}", { params: { path: { runId }, header: { "Idempotency-Key": key } } }),
    onSuccess: () => {
      announce("The run was deleted");
      client.removeQueries({ predicate: (query) => query.queryKey.includes(runId) });
      void client.invalidateQueries({ queryKey: ["runs"] });
      navigate("/");
    },
  });
  return (
    <Dialog open onClose={onClose} title="Delete this run">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!erase.isPending) erase.mutate();
        }}
      >
        <p>
          The run of <Name text={workflowId} /> is erased with everything that belongs to it: events, answers, assets and annotations. This cannot be undone. The audit log records who deleted it.
        </p>
        <p>
          <code>{runId}</code>
        </p>
        {erase.error && <ErrorNote error={erase.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="submit" className="primary destructive" disabled={erase.isPending}>
            Delete the run
          </button>
        </div>
      </form>
    </Dialog>
  );
}
