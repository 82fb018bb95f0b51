import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "../../api/client";
import type { Json } from "../../api/json";
import type { RunSnapshot } from "../../api/model";
import { number, record, text } from "../events";

/** What a ladder shows beside the log: what the node was set to, what the host advertises. All of it may be missing. */
export interface LadderContext {
  /** The node's config, of its workflow. */
  config: Record<string, unknown>;
  /** The kind that the node asks its model for. */
  askedKind: string | undefined;
  /** The most calls of one answer. */
  attempts: number | undefined;
  /** The tokens that a first call may take, and by what they grow after a cut. */
  room: number;
  multiplier: number;
  /** Versions of the kinds that the host has. */
  versions: Record<string, unknown>;
}

// The first call's room where neither node nor run says (docs/models.md).
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
    retry: false, // a workflow may be gone, or belong to a key with another scope
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

/** The schema that a payload was held to: of its kind, or the node's own for a value. */
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
