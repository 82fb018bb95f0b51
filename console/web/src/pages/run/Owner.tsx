import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, body } from "../../api/client";
import type { components } from "../../api/schema";
import { Ago } from "../../ui/Ago";
import { dateTime } from "../../ui/time";
import { Name } from "../../ui/Text";

export type Owner = components["schemas"]["GetRunOwnerResult"];

const interval = 15_000;

/** Returns the owner of a run, or its current wait; undefined if unknown. */
export function useOwner(runId: string, enabled: boolean): Owner | undefined {
  const { data } = useQuery({
    queryKey: ["run-owner", runId],
    queryFn: ({ signal }) => body(api.GET("/v1/runs/{runId}:owner", { params: { path: { runId } }, signal })),
    enabled,
    refetchInterval: interval,
  });
  return enabled ? data : undefined;
}

/** Shows the owner of a run and its lease. */
export function OwnerWords({ owner }: { owner: Owner }): ReactNode {
  if (owner.state === "none" || !owner.owner) return "none";
  return (
    <span title={owner.expiresAt ? `Lease valid until ${dateTime(owner.expiresAt)} unless renewed` : undefined}>
      <Name text={owner.host ?? owner.owner} /> {owner.host && <code className="dim">{owner.owner.slice(0, 8)}</code>}
      {owner.since && (
        <>
          {" "}
          since <Ago at={owner.since} />
        </>
      )}
      {owner.state === "owned" ? owner.expiresAt && <span className="dim"> until {dateTime(owner.expiresAt)}</span> : <strong> {owner.state}</strong>}
    </span>
  );
}
