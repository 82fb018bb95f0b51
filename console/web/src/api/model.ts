// Types of the documents that the API description leaves open, limited to what pages read.
import type { Json } from "./json";
import type { components } from "./schema";

/** A row of the list of runs. */
export type RunRow = components["schemas"]["RunSummary"];

/** This host's additions to a snapshot: last event time, current wait, stall time, quarantine, and the executed definition. */
export type Standing = {
  lastEventAt?: string;
  waits?: RunWait;
  stallsAt?: string;
  quarantine?: components["schemas"]["QuarantinedRun"];
  workflowVersion?: string;
  workflowDigest?: string;
};

/** A slot or a limit that a run waits for. */
export type RunLimit = components["schemas"]["RunLimit"];

/** What happens to nodes at work when their run is paused. */
export type DrainPolicy = components["schemas"]["DrainPolicy"];

/** What a run waits for. */
export type RunWait = components["schemas"]["RunWait"];

export const statuses = [
  "pending",
  "running",
  "waiting-approval",
  "waiting-input",
  "waiting-external",
  "paused",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
] as const;
export type RunStatus = (typeof statuses)[number];

export function isTerminal(status: string): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

export type Fault = { code: string; message: string; details?: { [name: string]: Json } };

export type NodeState = {
  status: string;
  typeId?: string;
  attempts?: number;
  since?: string;
  outputs?: Json;
  error?: Fault;
  [other: string]: Json | Fault | undefined;
};

export type OpenInterrupt = {
  kind: string;
  nodeId: string;
  interruptId?: string;
  payload?: Json;
  [other: string]: Json | undefined;
};

export type RunSnapshot = {
  runId: string;
  workflowId: string;
  status: RunStatus;
  owner?: { tenant: string; workspace?: string; principal?: string };
  currentNodeId?: string;
  createdAt?: string;
  startedAt?: string;
  completedAt?: string;
  inputs?: { [name: string]: Json };
  outputs?: { [name: string]: Json };
  variables?: { [name: string]: Json };
  channels?: { [name: string]: Json };
  nodeStates?: { [nodeId: string]: NodeState };
  error?: Fault;
  tags?: string[];
  metadata?: { [name: string]: Json };
  configurable?: { [name: string]: Json };
  metrics?: { openwopCost?: Json };
  interrupt?: OpenInterrupt;
  parentRunId?: string;
  parentNodeId?: string;
  childRuns?: { runId: string; status: string }[];
  waybill?: Standing;
  [other: string]: unknown;
};

export type RunEvent = {
  eventId: string;
  runId: string;
  sequence: number;
  type: string;
  payload: { [name: string]: Json };
  timestamp: string;
  nodeId?: string;
  causationId?: string;
  contentTrust?: "trusted" | "untrusted";
};
