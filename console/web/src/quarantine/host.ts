import { useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { lookup } from "../api/lookup";
import type { components } from "../api/schema";

export type QuarantinedRun = components["schemas"]["QuarantinedRun"];

export const quarantineKey = ["quarantine"] as const;

const interval = 30_000;

/** Returns one page of the tenant's quarantined runs. */
export function useQuarantine() {
  return useQuery({
    queryKey: [...quarantineKey, "all"],
    queryFn: ({ signal }) => body(api.GET("/v1/quarantine", { params: { query: { limit: 200 } }, signal })),
    refetchInterval: interval,
  });
}

/** Returns the quarantine of a run; undefined if there is none or the host does not report it. */
export function useQuarantined(runId: string, enabled: boolean): QuarantinedRun | undefined {
  const { data } = useQuery({
    queryKey: [...quarantineKey, runId],
    queryFn: ({ signal }) => body(api.GET("/v1/quarantine", { params: { query: { runId } }, signal })),
    enabled,
    refetchInterval: interval,
  });
  return enabled ? data?.runs[0] : undefined;
}

/** The reason code of a damaged log. */
export const damagedLog = "log_damaged";

const reasons: { [reason: string]: string } = {
  [damagedLog]: "The run's log is damaged. Restore the log from a backup.",
  definition_missing: "The workflow definition is missing. Restore it from a backup, or end the run.",
  engine_version: "The run needs a newer engine. Upgrade the dispatchers.",
  panic: "The run's execution panics. Upgrade the dispatchers, or end the run.",
  cannot_continue: "The dispatcher cannot continue the run. The dispatcher's log has the error.",
};

/** Describes a reason and its fix. */
export function reasonWords(reason: string): string {
  return lookup(reasons, reason) ?? reason;
}
