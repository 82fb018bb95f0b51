import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { useLocation } from "wouter";
import { hostURL } from "../../api/base";
import { api } from "../../api/client";
import { useRepeat } from "../../api/repeat";
import { announce } from "../../ui/announce";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name } from "../../ui/Text";

/** A change of the versions of a workflow; without a version, the workflow itself is deleted. */
export type Change = { verb: "promote"; version: string; current: string } | { verb: "delete"; version?: string };

/** Changes a workflow's versions after a confirmation. */
export function ChangeDialog({ workflowId, change, onClose }: { workflowId: string; change: Change; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const { title, effect, action, done } = wordsOf(workflowId, change);
  const repeat = useRepeat();
  const send = useMutation({
    mutationFn: () => repeat("change", (key) => carryOut(workflowId, change, key)),
    onSuccess: async () => {
      const gone = change.verb === "delete" && change.version === undefined;
      onClose();
      announce(done);
      if (gone) navigate("/workflows");
      await client.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("workflow") });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!send.isPending) send.mutate();
  };
  return (
    <Dialog open onClose={onClose} title={title}>
      <form onSubmit={submit} className="form">
        <p>
          <Name text={effect} />
        </p>
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="submit" className={change.verb === "delete" ? "primary destructive" : "primary"} disabled={send.isPending}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function wordsOf(workflowId: string, change: Change): { title: string; effect: string; action: string; done: string } {
  if (change.verb === "promote") {
    return {
      title: `Make version ${change.version} current`,
      effect: `New runs use version ${change.version} instead of ${change.current}. Runs that exist keep theirs.`,
      action: "Make current",
      done: `Version ${change.version} is current`,
    };
  }
  if (change.version !== undefined) {
    return {
      title: `Delete version ${change.version}`,
      effect: `Version ${change.version} cannot be started any more, and no other content gets its number. Runs that exist continue.`,
      action: "Delete the version",
      done: `Deleted version ${change.version}`,
    };
  }
  return {
    title: "Delete this workflow",
    effect: `${workflowId} cannot be started any more, in any of its versions. Runs that exist continue, and stay in the list of runs.`,
    action: "Delete the workflow",
    done: `Deleted ${workflowId}`,
  };
}

async function carryOut(workflowId: string, change: Change, key: string): Promise<void> {
  const headers = { "Idempotency-Key": key };
  if (change.verb === "delete") {
    await api.DELETE("/v1/workflows/{workflowId}", { params: { path: { workflowId }, query: change.version === undefined ? {} : { version: change.version }, header: headers } });
    return;
  }
  // A version is registered again byte for byte, because a version never changes.
  const answer = await fetch(`${hostURL}/v1/workflows/${encodeURIComponent(workflowId)}?version=${encodeURIComponent(change.version)}`);
  const document = await answer.text();
  if (!answer.ok) throw new Error(`Version ${change.version} cannot be read (${answer.status}). Load the page again.`);
  await api.POST("/v1/workflows", { params: { header: headers }, body: document as never, bodySerializer: (sent: unknown) => sent as string });
}
