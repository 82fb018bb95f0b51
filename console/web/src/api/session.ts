import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "./client";
import { ApiError } from "./errors";

/** What a page needs to know of the host before anybody has signed in. No secrets are in it. */
export type ConsoleConfig = {
  basePath: string;
  mode: "dev" | "production";
  signedIn: boolean;
  version: string;
  links: { name: string; url: string }[];
  limits: { [name: string]: number };
  stalledAfterMs: number;
  /** Whose session it is; absent before anybody has signed in. */
  session?: { tenant: string; keyId: string; scopes: string[]; user?: string };
};

export const configKey = ["console", "config"] as const;

// A host without the console's own routes is still a host: then the page says nothing of them.
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

/** Whether the session has all of these scopes. The host decides in the end; this only says it beforehand. */
export function useMay(...scopes: string[]): boolean {
  const { session } = useConfig();
  return session === undefined || scopes.every((scope) => session.scopes.includes(scope));
}

const write = { "Content-Type": "application/json", "X-Waybill-Console": "1" };

/** Trades a key, or the one-time code that `waybill dev` prints, for the cookie of a session. */
export async function signIn(credential: { key: string } | { code: string }): Promise<void> {
  await fetchJson("/console/session", { method: "POST", headers: write, body: JSON.stringify(credential) });
}

export async function signOut(): Promise<void> {
  await fetchJson("/console/session", { method: "DELETE", headers: write });
}

/** Takes a one-time code out of the address before anything else can see it. */
export function takeCode(): string | undefined {
  const code = /^#code=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (location.hash.startsWith("#code=")) history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}
