import { api, body, idempotencyKey } from "../../api/client";
import { hostURL } from "../../api/base";
import { isTerminal, type RunRow } from "../../api/model";

/** The outcome for one run. */
export type Result = { runId: string; ok: boolean; newRunId?: string; error?: { code: string; message: string } };

/** What is done to several runs. */
export type Action = "cancel" | "retry" | "delete" | "annotate" | "export";

type Kind = {
  verb: string;
  done: string;
  scopes: readonly string[];
  /** Runs that it applies to. */
  fits: (row: RunRow) => boolean;
  of: string;
  warning: string;
  /** The text that the user adds. */
  text?: { label: string; required: boolean };
};

export const actions: { [action in Action]: Kind } = {
  cancel: {
    verb: "Cancel",
    done: "cancelled",
    scopes: ["runs:cancel"],
    fits: (row) => !isTerminal(row.status),
    of: "active",
    warning: "The runs and their child runs end permanently. Completed effects are not undone.",
    text: { label: "Reason (kept in each run's log)", required: false },
  },
  retry: {
    verb: "Retry",
    done: "started again",
    scopes: ["runs:create", "runs:read"],
    fits: (row) => isTerminal(row.status),
    of: "ended",
    warning: "Each run starts again from its first event, as a new run with the same inputs. Models and tools are called again.",
  },
  delete: {
    verb: "Delete",
    done: "deleted",
    scopes: ["runs:delete"],
    fits: (row) => isTerminal(row.status),
    of: "ended",
    warning: "The runs are erased with everything that belongs to them. This cannot be undone.",
  },
  annotate: {
    verb: "Label",
    done: "labelled",
    scopes: ["runs:read"],
    fits: () => true,
    of: "",
    warning: "The label is added to the annotations of each run.",
    text: { label: "Label", required: true },
  },
  export: {
    verb: "Export",
    done: "exported",
    scopes: ["runs:read"],
    fits: () => true,
    of: "",
    warning: "The debug bundles are saved as one file with a line for each run. Values are left out.",
  },
};

/** The most runs of a request, and of one action by filter. */
export const atOnce = 100;
export const most = 5000;
export const mostExported = 200;

export const count = (n: number): string => `${n.toLocaleString("en")} ${n === 1 ? "run" : "runs"}`;

/** Summarises results. */
export function tally(action: Action, results: readonly Result[]): string {
  const done = results.filter((r) => r.ok).length;
  const ended = results.filter((r) => r.error?.code === "run_terminal").length;
  const refused = results.length - done - ended;
  const { done: word } = actions[action];
  return [`${count(done)} ${word}`, ...(ended > 0 ? [`${ended} had ended before`] : []), ...(refused > 0 ? [`${refused} not ${word}`] : [])].join(", ");
}

/** A group of runs that one request changes. It keeps its key, so that a repeated request changes nothing twice. */
export type Batch = { ids: string[]; key: string };

export const batch = (ids: string[]): Batch => ({ ids, key: idempotencyKey() });

/** A page of the runs that a filter selects and an action applies to. */
export async function selectPage(action: Action, filter: string, cursor: string | undefined): Promise<{ batch: Batch; next: string | undefined }> {
  const query = { limit: atOnce, ...(filter ? { filter } : {}), ...(cursor ? { cursor } : {}) };
  const page = await body(api.GET("/v1/runs", { params: { query } }));
  return { batch: batch(page.runs.filter(actions[action].fits).map((row) => row.runId)), next: page.nextCursor };
}

/** Sends one batch. Bundles are added to `bundles`. */
export async function send(action: Action, { ids: runIds, key }: Batch, text: string, bundles: string[]): Promise<Result[]> {
  const header = { "Idempotency-Key": key };
  switch (action) {
    case "cancel":
      return (await body(api.POST("/v1/runs:bulk-cancel", { params: { header }, body: { runIds, ...(text ? { reason: text } : {}) } }))).results;
    case "retry":
      return (await body(api.POST("/v1/runs:bulk-retry", { params: { header }, body: { runIds } }))).results;
    case "delete":
      return (await body(api.POST("/v1/runs:bulk-delete", { params: { header }, body: { runIds } }))).results;
    case "annotate":
      return (await body(api.POST("/v1/runs:bulk-annotate", { params: { header }, body: { runIds, signal: { kind: "label", label: text } } }))).results;
    case "export":
      return Promise.all(runIds.map((runId) => exportOne(runId, bundles)));
  }
}

// The bytes of the host are kept, with its redactions. A bundle has no line breaks.
async function exportOne(runId: string, bundles: string[]): Promise<Result> {
  const answer = await fetch(`${hostURL}/v1/runs/${encodeURIComponent(runId)}/debug-bundle`, { credentials: "same-origin" });
  const content = await answer.text();
  if (answer.ok) {
    bundles.push(content.trim());
    return { runId, ok: true };
  }
  return { runId, ok: false, error: { code: String(answer.status), message: answer.statusText } };
}
