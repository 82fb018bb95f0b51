import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "../../api/client";
import type { Json } from "../../api/json";
import type { RunSnapshot } from "../../api/model";
import { number, record, text } from "../events";

/** Context of a ladder outside the log: the node's settings and the host's capabilities. Any of it may be missing. */
export interface LadderContext {
  /** The node's config in its workflow. */
  config: Record<string, unknown>;
  /** The kind that the node requests. */
  askedKind: string | undefined;
  /** Maximum calls per answer. */
  attempts: number | undefined;
  /** Token limit of the first call, and its multiplier after a truncation. */
  room: number;
  multiplier: number;
  /** Schema versions of the host's kinds. */
  versions: Record<string, unknown>;
}

// Default token limit of the first call (docs/models.md).
const hostRoom = 4000;

export function useCapabilities(): Record<string, unknown> {
  const { data } = useQuery({
    queryKey: ["capabilities"],
    queryFn: ({ signal }) => fetchJson("/.well-known/openwop", { signal }),
    staleTime: 300_000,
  });
  return record(data);
}

export function useLadderContext(snapshot: RunSnapshot | undefined, nodeId: string | undefined): LadderContext {
  const capabilities = useCapabilities();
  const workflowId = snapshot?.workflowId;
  const { data: workflow } = useQuery({
    queryKey: ["workflow", workflowId],
    queryFn: ({ signal }) => fetchJson(`/v1/workflows/${encodeURIComponent(workflowId ?? "")}`, { signal }),
    enabled: workflowId !== undefined,
    retry: false, // the workflow may be deleted, or need another scope
  });
  const nodes = record(workflow).nodes;
  const node = Array.isArray(nodes) ? record(nodes.find((n) => record(n).id === nodeId)) : {};
  const config = record(node.config);
  const reliability = record(record(capabilities.envelopes).reliability);
  return {
    config,
    askedKind: text(config.envelopeType),
    attempts: number(reliability.maxRetryAttempts),
    room: number(config.maxTokens) ?? number(record(snapshot?.configurable).maxTokens) ?? hostRoom,
    multiplier: number(record(reliability.completion).truncationBudgetMultiplier) ?? 2,
    versions: record(capabilities.schemaVersions),
  };
}

/** Returns the schema of a payload: of its kind, or the node's own for a value. */
export function useSchema(kind: string | undefined, config: Record<string, unknown>, form: "envelope" | "value"): Json | undefined {
  const { data } = useQuery({
    queryKey: ["schema", kind],
    queryFn: ({ signal }) => fetchJson(`/schemas/envelopes/${encodeURIComponent(kind ?? "")}.schema.json`, { signal }),
    enabled: form === "envelope" && kind !== undefined,
    staleTime: 300_000,
    retry: false,
  });
  return form === "value" ? (config.outputSchema as Json | undefined) : data;
}
