import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "./client";
import { ApiError } from "./errors";

/** The configuration of the console, available before sign-in. It contains no secrets. */
export type ConsoleConfig = {
  basePath: string;
  mode: "dev" | "production";
  signedIn: boolean;
  version: string;
  links: { name: string; url: string }[];
  limits: { [name: string]: number };
  stalledAfterMs: number;
  /** The session's identity; absent before sign-in. */
  session?: { tenant: string; keyId: string; scopes: string[]; user?: string };
};

export const configKey = ["console", "config"] as const;

// Defaults for hosts without the console's own routes.
const defaults: ConsoleConfig = { basePath: "", mode: "production", signedIn: true, version: "", links: [], limits: {}, stalledAfterMs: 120_000 };

export async function loadConfig(signal?: AbortSignal): Promise<ConsoleConfig> {
  try {
    return { ...defaults, ...(await fetchJson<Partial<ConsoleConfig>>("/console/config.json", signal ? { signal } : {})) };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return defaults;
    throw error;
  }
}

export function useConfig(): ConsoleConfig {
  return useQuery({ queryKey: configKey, queryFn: ({ signal }) => loadConfig(signal), staleTime: Number.POSITIVE_INFINITY }).data ?? defaults;
}

/** Reports whether the session has all of these scopes. The host makes the final decision. */
export function useMay(...scopes: string[]): boolean {
  const { session } = useConfig();
  return session === undefined || scopes.every((scope) => session.scopes.includes(scope));
}

const write = { "Content-Type": "application/json", "X-Waybill-Console": "1" };

/** Exchanges a key, or the one-time code that `waybill dev` prints, for a session cookie. */
export async function signIn(credential: { key: string } | { code: string }): Promise<void> {
  await fetchJson("/console/session", { method: "POST", headers: write, body: JSON.stringify(credential) });
}

export async function signOut(): Promise<void> {
  await fetchJson("/console/session", { method: "DELETE", headers: write });
}

/** Removes a one-time code from the address before any other code can read it. */
export function takeCode(): string | undefined {
  const code = /^#code=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (location.hash.startsWith("#code=")) history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}
