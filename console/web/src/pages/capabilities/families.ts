import { isObject, type Json } from "../../api/json";
import { lookup } from "../../api/lookup";

/** A capability family: a member at the root of the discovery document. */
export interface Family {
  name: string;
  title: string;
  supported: boolean | undefined;
  value: Json;
}

const titles: Record<string, string> = {
  aiProviders: "Model providers",
  modelCapabilities: "Model capabilities",
  envelopes: "Model answers",
  envelopeContracts: "Envelope contracts",
  limits: "Limits",
  interrupts: "Questions to people",
  interrupt: "Approval routing",
  replay: "Fork and replay",
  runs: "Runs",
  webhooks: "Webhooks",
  prompts: "Prompts",
  auth: "Access",
  grpc: "gRPC",
  restTransport: "REST",
  idempotency: "Idempotency",
  debugBundle: "Debug bundle",
  subWorkflow: "Sub-workflows",
  feedback: "Annotations",
  providerUsage: "Usage and cost",
  compliance: "Redaction",
  agents: "Agents",
  observability: "Observability",
  testing: "Testing",
};

// Families with their own table, and the order of the first ones. The rest follow in document order.
const elsewhere = new Set(["supportedEnvelopes", "schemaVersions"]);
const order = ["host", "limits", "aiProviders", "modelCapabilities", "envelopes", "envelopeContracts", "interrupts", "interrupt", "replay", "runs", "webhooks"];

/** Returns the families of a document in display order. Plain members at the root form the first. */
export function families(document: { [name: string]: Json }): Family[] {
  const host: { [name: string]: Json } = {};
  const out: Family[] = [];
  for (const [name, value] of Object.entries(document)) {
    if (elsewhere.has(name)) continue;
    if (!isObject(value) || name === "implementation") host[name] = value;
    else out.push({ name, title: lookup(titles, name) ?? sentence(inWords(name)), supported: typeof value.supported === "boolean" ? value.supported : undefined, value });
  }
  const rank = (f: Family): number => (order.includes(f.name) ? order.indexOf(f.name) : order.length);
  return [{ name: "host", title: "This host", supported: undefined, value: host }, ...out].sort((a, b) => rank(a) - rank(b));
}

/** Splits a member name into words: maxRunDurationMs becomes "max run duration ms". */
export function inWords(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return words.replace(/\b[A-Z][a-z]*\b/g, (w) => w.toLowerCase());
}

/** Begins a label with a capital. */
export const sentence = (words: string): string => words.replace(/^[a-z]/, (c) => c.toUpperCase());
