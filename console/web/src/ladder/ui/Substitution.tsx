import type { ReactNode } from "react";
import { Link } from "wouter";
import { Name, Redacted } from "../../ui/Text";
import type { Execution } from "../model";

/** Shows a model substitution and its cause. */
export function Substitution({ runId, execution: { substitution: s } }: { runId: string; execution: Execution }): ReactNode {
  if (!s) return null;
  return (
    <p className="note swap substitution">
      <strong>Another model was called.</strong>{" "}
      <span className="models">
        <code>
          <Name text={`${s.from.provider}·${s.from.model}`} />
        </code>{" "}
        <span aria-hidden="true">→</span>
        <span className="unseen">was replaced by</span> {s.hidden ? <Redacted /> : <code><Name text={`${s.to.provider}·${s.to.model}`} /></code>}
      </span>{" "}
      because the first lacks{" "}
      {s.missing.map((m) => (
        <code key={m} className="chip">
          <Name text={m} />
        </code>
      ))}
      {s.hidden && <span className="dim"> The host does not disclose which model.</span>}{" "}
      <Link href={`/runs/${encodeURIComponent(runId)}?e=${s.event.sequence}`}>#{s.event.sequence}</Link>
    </p>
  );
}
