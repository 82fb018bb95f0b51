import type { components } from "../../api/schema";
import { ApiError } from "../../api/errors";
import { isObject, type Json } from "../../api/json";

type ModelCapability = components["schemas"]["ModelCapability"];
export type Substitution = components["schemas"]["ModelSubstitution"];

/** The models of a provider with a capability. */
export type Models = { provider: string; models: string[]; ownKey: boolean };

/**
 * A model capability from the discovery document. details has the requiring node types and the models, if the host
 * publishes them.
 */
export type Capability = { id: string; advertised: boolean; details: { requiredBy: string[]; enforced: boolean; by: Models[] } | undefined };

/** Returns the advertised and published capabilities, in the host's order. */
export function capabilities(document: Json | undefined, details: readonly ModelCapability[] | undefined): Capability[] {
  const advertised = advertisedIn(document);
  const ids = [...new Set([...(details ?? []).map((c) => c.id), ...advertised])];
  return ids.map((id): Capability => {
    const c = details?.find((t) => t.id === id);
    return { id, advertised: advertised.includes(id), details: c && { requiredBy: c.requiredBy, enforced: c.enforced, by: byProvider(c) } };
  });
}

function advertisedIn(document: Json | undefined): string[] {
  const gate = isObject(document) ? document.modelCapabilities : undefined;
  const list = isObject(gate) && gate.supported !== false ? gate.advertised : undefined;
  return Array.isArray(list) ? list.filter((id) => typeof id === "string") : [];
}

function byProvider(c: ModelCapability): Models[] {
  const out = new Map<string, Models>();
  for (const { provider, model, ownKey } of c.models) {
    const one = out.get(provider) ?? { provider, models: [], ownKey };
    one.models.push(model);
    out.set(provider, one);
  }
  return [...out.values()];
}

/** Explains missing data: the host has no such endpoint, or the key lacks a scope. */
export function missingReason(error: unknown, scope: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if ([404, 405, 501].includes(error.status)) return "this host does not publish it";
  return error.status === 403 ? `requires a key with the scope ${scope}` : undefined;
}

/** Reports whether the host hides the fallback model. */
export const withheld = (s: Substitution): boolean => s.fallbackProvider === "[REDACTED]";
