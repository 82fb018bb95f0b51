import type { ReactNode } from "react";
import { Link } from "wouter";
import { Ago } from "../ui/Ago";
import { ErrorNote } from "../ui/ErrorNote";
import { shortId } from "../ui/Id";
import { Name } from "../ui/Text";
import { dateTime } from "../ui/time";
import { useQuarantine } from "./host";
import "./quarantine.css";

/** Lists the tenant's quarantined runs. */
export function QuarantineList(): ReactNode {
  const { data, error, refetch } = useQuarantine();
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return <p className="loading">Loading…</p>;
  if (data.runs.length === 0) return <p className="dim">No quarantined runs.</p>;
  return (
    <>
      <ul className="quarantined">
        {data.runs.map((run) => (
          <li key={run.runId}>
            <Link href={`/runs/${encodeURIComponent(run.runId)}`}>
              <Name text={run.workflowId} /> <span className="mono">{shortId(run.runId)}</span>
            </Link>{" "}
            <code>{run.reason}</code>
            <div className="small dim">
              {run.since && (
                <>
                  since <Ago at={run.since} />,{" "}
                </>
              )}
              next check {dateTime(run.nextCheckAt)}
            </div>
          </li>
        ))}
      </ul>
      {data.nextCursor && <p className="dim small">The list shows the first {data.runs.length} runs.</p>}
    </>
  );
}
