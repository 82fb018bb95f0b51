import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { Link } from "wouter";
import { api, bodyAs, idempotencyKey } from "../../api/client";
import { isObject, type Json } from "../../api/json";
import { isTerminal, type DrainPolicy, type RunSnapshot } from "../../api/model";
import { useMay } from "../../api/session";
import type { RunLog } from "../../live/runLog";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { lookOf } from "../../ui/Status";
import { Exports } from "./Exports";
import { DeleteDialog, HoldDialog } from "./Keep";
import { lookup } from "../../api/lookup";
import { workflowPath } from "../../workflows/path";

type Verb = "pause" | "resume" | "cancel";

/** The actions of a run. Unavailable actions are shown with the reason. */
export function Actions({ snapshot, log, quarantined, onFork }: { snapshot: RunSnapshot; log: RunLog; quarantined: boolean; onFork: () => void }): ReactNode {
  const [asked, ask] = useState<Verb>();
  const capabilities = useCapabilities();
  const may = useMay("runs:cancel");
  const mayFork = useMay("runs:create", "runs:read");
  const mayHold = useMay("runs:hold");
  const mayDelete = useMay("runs:delete");
  const [keeping, keep] = useState<"hold" | "delete">();
  const refused = (v: Verb): string | undefined => {
    if (!may) return "Your key lacks the scope runs:cancel.";
    if (quarantined) return "The run is quarantined. See the note below for options.";
    return whyNot(v, snapshot, capabilities);
  };
  const verb: Verb = snapshot.status === "paused" ? "resume" : "pause";
  return (
    <div className="run-actions">
      <Action word={verb === "pause" ? "Pause" : "Resume"} refused={refused(verb)} onClick={() => ask(verb)} />
      <Action word="Cancel" refused={refused("cancel")} onClick={() => ask("cancel")} danger />
      {mayFork && snapshot.waybill?.workflowVersion !== undefined && (
        <Link href={workflowPath(snapshot.workflowId, "start", { from: snapshot.runId })} className="button" title="Start a new run with the inputs of this one, changed as you like">
          Run again…
        </Link>
      )}
      <Action word="Fork…" refused={mayFork ? undefined : "Your key lacks the scope runs:create."} onClick={onFork} />
      <Action word="Hold…" refused={mayHold ? undefined : "Your key lacks the scope runs:hold."} onClick={() => keep("hold")} />
      <Action
        word="Delete…"
        refused={mayDelete ? (isTerminal(snapshot.status) ? undefined : "Only a run that has ended can be deleted. Cancel it first.") : "Your key lacks the scope runs:delete."}
        onClick={() => keep("delete")}
        danger
      />
      <Exports snapshot={snapshot} log={log} />
      {keeping === "hold" && <HoldDialog runId={snapshot.runId} onClose={() => keep(undefined)} />}
      {keeping === "delete" && <DeleteDialog runId={snapshot.runId} workflowId={snapshot.workflowId} onClose={() => keep(undefined)} />}
      {asked && <Ask verb={asked} snapshot={snapshot} capabilities={capabilities} onClose={() => ask(undefined)} />}
    </div>
  );
}

type Capabilities = { [name: string]: Json } | undefined;

function useCapabilities(): Capabilities {
  return useQuery({
    queryKey: ["capabilities"],
    queryFn: ({ signal }) => bodyAs<{ [name: string]: Json }>(api.GET("/.well-known/openwop", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  }).data;
}

/** Returns why an action is unavailable; undefined if it is available. */
export function whyNot(verb: Verb, run: RunSnapshot, capabilities: Capabilities): string | undefined {
  if (verb !== "cancel" && capabilities && !pauses(capabilities)) return "This host does not support pausing.";
  if (isTerminal(run.status)) return `The run has ended: ${lookOf(run.status).word.toLowerCase()}.`;
  if (run.status === "cancelling") return "The run is being cancelled.";
  if (verb === "pause" && run.status.startsWith("waiting")) return "A waiting run cannot be paused.";
  return undefined;
}

function pauses(capabilities: { [name: string]: Json }): boolean {
  const { runs } = capabilities;
  return isObject(runs) && isObject(runs.pauseResume) && runs.pauseResume.supported === true;
}

function policies(capabilities: Capabilities): string[] {
  const runs = capabilities?.runs;
  const list = isObject(runs) && isObject(runs.pauseResume) ? runs.pauseResume.drainPolicies : undefined;
  return Array.isArray(list) ? list.map(String) : [];
}

// aria-disabled keeps the button focusable, so that screen readers announce the reason.
function Action({ word, refused, onClick, danger }: { word: string; refused: string | undefined; onClick: () => void; danger?: boolean }): ReactNode {
  const id = useId();
  return (
    <>
      <button
        type="button"
        className={danger && !refused ? "danger" : undefined}
        aria-disabled={refused ? true : undefined}
        aria-describedby={refused ? id : undefined}
        title={refused}
        onClick={refused ? undefined : onClick}
      >
        {word}
      </button>
      {refused && (
        <span id={id} className="unseen">
          {refused}
        </span>
      )}
    </>
  );
}

const words: { [verb in Verb]: { title: string; effect: string; do: string } } = {
  pause: { title: "Pause this run", effect: "No further node starts until the run is resumed.", do: "Pause" },
  resume: { title: "Resume this run", effect: "The run continues from its current state.", do: "Resume" },
  cancel: { title: "Cancel this run", effect: "The run and its child runs end permanently. Completed effects are not undone.", do: "Cancel the run" },
};

const policyWords: { [policy: string]: string } = {
  "drain-current-node": "after the current node completes",
  immediate: "immediately; the current node restarts when the run is resumed",
};

function Ask({ verb, snapshot, capabilities, onClose }: { verb: Verb; snapshot: RunSnapshot; capabilities: Capabilities; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const id = useId();
  const [reason, setReason] = useState("");
  const offered = policies(capabilities);
  const [policy, setPolicy] = useState(offered.includes("drain-current-node") ? "drain-current-node" : (offered[0] ?? ""));
  const [key] = useState(idempotencyKey);
  const send = useMutation({
    mutationFn: () => act(verb, snapshot.runId, reason.trim(), policy, key),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["run", snapshot.runId] });
      onClose();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!send.isPending) send.mutate();
  };
  return (
    <Dialog open onClose={onClose} title={words[verb].title}>
      <form onSubmit={submit} className="form">
        <p>{words[verb].effect}</p>
        {verb === "pause" && offered.length > 1 && (
          <fieldset>
            <legend>When to stop</legend>
            {offered.map((p) => (
              <label key={p} className="check">
                <input type="radio" name="policy" value={p} checked={policy === p} onChange={() => setPolicy(p)} />
                {lookup(policyWords, p) ?? p}
              </label>
            ))}
          </fieldset>
        )}
        <label htmlFor={id}>Reason (kept in the run&apos;s log)</label>
        <input id={id} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} autoComplete="off" />
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="submit" className={verb === "cancel" ? "primary destructive" : "primary"} disabled={send.isPending}>
            {words[verb].do}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function act(verb: Verb, runId: string, reason: string, drainPolicy: string, key: string): Promise<unknown> {
  const params = { path: { runId }, header: { "Idempotency-Key": key } };
  const given = reason ? { reason } : {};
  switch (verb) {
    case "cancel":
      return api.POST("/v1/runs/{runId}/cancel", { params, body: given });
    case "pause":
      return api.POST("/v1/runs/{runId}:pause", { params, body: drainPolicy ? { ...given, drainPolicy: drainPolicy as DrainPolicy } : given });
    case "resume":
      return api.POST("/v1/runs/{runId}:resume", { params, body: given });
  }
}
