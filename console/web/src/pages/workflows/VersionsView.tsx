import { useId, useState, type ReactNode } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { useMay } from "../../api/session";
import { Changes } from "../../ui/Changes";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name } from "../../ui/Text";
import { definitionChanges } from "../../workflows/compare";
import { useDefinition, type Versions } from "../../workflows/host";
import { workflowPath } from "../../workflows/path";
import { ChangeDialog, type Change } from "./ChangeDialog";

/** The versions of a workflow, and what differs between two of them. */
export function VersionsView({ workflowId, versions }: { workflowId: string; versions: Versions }): ReactNode {
  const id = useId();
  const params = new URLSearchParams(useSearch());
  const [, navigate] = useLocation();
  const list = versions.versions;
  const current = list.find((v) => v.current)?.version ?? "";
  const to = params.get("to") ?? current;
  const from = params.get("from") ?? list.find((v) => v.version !== to)?.version ?? "";
  const mayChange = useMay("workflows:write") && versions.origin === "tenant";
  const [asked, ask] = useState<Change>();
  const go = (a: string, b: string): void => navigate(workflowPath(workflowId, "", { view: "versions", from: a, to: b }), { replace: true });
  return (
    <div className="versions">
      <table className="rows">
        <caption className="unseen">Versions, the current one first</caption>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Digest</th>
            <th scope="col">
              <span className="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((v) => (
            <tr key={v.version}>
              <th scope="row" className="nowrap">
                <Link href={workflowPath(workflowId, "", v.current ? {} : { version: v.version })}>
                  <Name text={v.version} />
                </Link>
                {v.current && <span className="chip good">current</span>}
              </th>
              <td>
                <code className="small dim" title={v.digest}>
                  {v.digest.slice(0, 19)}…
                </code>
              </td>
              <td className="num">
                {!v.current && (
                  <span className="buttons version-actions">
                    <button type="button" onClick={() => go(v.version, current)} aria-label={`Compare with current: version ${v.version}`}>
                      Compare with current
                    </button>
                    {mayChange && (
                      <>
                        <button type="button" onClick={() => ask({ verb: "promote", version: v.version, current })} aria-label={`Make current: version ${v.version}`}>
                          Make current
                        </button>
                        <button type="button" className="danger" onClick={() => ask({ verb: "delete", version: v.version })} aria-label={`Delete version ${v.version}`}>
                          Delete
                        </button>
                      </>
                    )}
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {asked && <ChangeDialog workflowId={workflowId} change={asked} onClose={() => ask(undefined)} />}
      {list.length > 1 && (
        <section className="card" aria-label="Differences">
          <div className="compare">
            <h2>Differences</h2>
            {(
              [
                ["from", "Old", from, (v: string) => go(v, to)],
                ["to", "New", to, (v: string) => go(from, v)],
              ] as const
            ).map(([name, word, value, set]) => (
              <div key={name} className="compare-end">
                <label htmlFor={`${id}${name}`}>{word}</label>
                <select id={`${id}${name}`} value={value} onChange={(e) => set(e.target.value)}>
                  {list.map((v) => (
                    <option key={v.version} value={v.version}>
                      {v.version}
                      {v.current ? " (current)" : ""}
                    </option>
                  ))}
                </select>
              </div>
            ))}
          </div>
          <Differences workflowId={workflowId} from={from} to={to} />
        </section>
      )}
    </div>
  );
}

function Differences({ workflowId, from, to }: { workflowId: string; from: string; to: string }): ReactNode {
  const a = useDefinition(workflowId, from);
  const b = useDefinition(workflowId, to);
  const error = a.error ?? b.error;
  if (error) return <ErrorNote error={error} />;
  if (!a.data || !b.data) return <p className="loading">Comparing…</p>;
  return <Changes list={definitionChanges(a.data, b.data)} names={[from, to]} same="The two versions do not differ." />;
}
