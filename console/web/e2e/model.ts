import type { Host } from "./host";

/** One answer of the scripted model: a text, or how it stops. */
export type Answer = string | { content?: string; stopReason?: string; refusalText?: string; outputTokens?: number };

/** Scripts the answers to the next calls of a node. */
export async function program(host: Host, nodeId: string, ...answers: Answer[]): Promise<void> {
  await host.json("POST", "/v1/host/sample/test/mock-ai/program", { nodeId, program: answers.map((a) => (typeof a === "string" ? { content: a } : a)) });
}

/** Registers a workflow of one node that asks the scripted model. */
export async function asking(host: Host, id: string, config: object = {}): Promise<void> {
  await host.workflow(id, [{ id, typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", prompt: "Sort this mail", ...config } }]);
}

export const kind = "vendor.waybill.ticket.triage";

/** A payload that the example's kind takes, with some members otherwise. */
export function triage(otherwise: object = {}): Record<string, unknown> {
  return {
    reasoning: "charged twice",
    category: "billing",
    priority: "urgent",
    language: "en",
    summary: "Second charge for one lamp.",
    action: { kind: "refund", orderId: "WL-48213", reason: "double charge" },
    ...otherwise,
  };
}

export const envelope = (type: string, payload: unknown): string => JSON.stringify({ type, payload });

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** A picture of one pixel. */
export const picture = (more: object = {}): Record<string, unknown> => ({ base64: dot, bytes: 70, mimeType: "image/png", ...more });
