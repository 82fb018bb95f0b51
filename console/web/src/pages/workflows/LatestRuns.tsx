import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RunRow } from "../../api/model";
import { Icon } from "../../ui/Icon";
import { shortId } from "../../ui/Id";
import { lookOf } from "../../ui/Status";
import { dateTime } from "../../ui/time";

/** The latest runs as signs, the newest last, each a link to its run. */
export function LatestRuns({ runs }: { runs: readonly RunRow[] }): ReactNode {
  if (runs.length === 0) return <span className="dim">none yet</span>;
  return (
    <ul className="latest" aria-label="Latest runs, the newest last">
      {runs.toReversed().map((run) => {
        const look = lookOf(run.quarantine ? "quarantined" : run.stalled ? "stalled" : run.status);
        const words = `${look.word}, ${shortId(run.runId)}, ${dateTime(run.createdAt)}`;
        return (
          <li key={run.runId}>
            <Link href={`/runs/${run.runId}`} className={`latest-run ${look.tone}`} aria-label={words} title={words}>
              <Icon name={look.icon} />
            </Link>
          </li>
        );
      })}
    </ul>
  );
}
