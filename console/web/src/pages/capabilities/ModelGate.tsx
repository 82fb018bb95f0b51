import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api, body } from "../../api/client";
import type { Json } from "../../api/json";
import { Ago } from "../../ui/Ago";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { shortId } from "../../ui/Id";
import { Name, Redacted } from "../../ui/Text";
import { clock } from "../../ui/time";
import { capabilities, missingReason, withheld, type Capability, type Models, type Substitution } from "./gate";

/** Model capabilities: advertised, enforced, and the models that have them. */
export function ModelGate({ document }: { document: Json }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["model-capabilities"],
    queryFn: ({ signal }) => body(api.GET("/v1/models:capabilities", { signal })),
    staleTime: 60_000,
    retry: false,
  });
  const rows = capabilities(document, data?.capabilities);
  const silent = missingReason(error, "manifest:read");
  if (rows.length === 0 && (silent || !error)) return null;
  return (
    <section aria-labelledby="model-gate">
      <h2 id="model-gate">Capabilities of models</h2>
      {error && !silent && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {rows.length > 0 && (
        <div className="scroll" role="region" aria-label="Model capabilities" tabIndex={0}>
          <table className="gate-table">
            <thead>
              <tr>
                <th scope="col">Capability</th>
                <th scope="col">Advertised</th>
                {data && <th scope="col">Enforced</th>}
                {data && <th scope="col">Models that have it</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((c) => (
                <tr key={c.id}>
                  <th scope="row">
                    <code>
                      <Name text={c.id} />
                    </code>
                  </th>
                  <td>
                    <YesNo yes={c.advertised} words={["yes", "no"]} />
                  </td>
                  {data && <CapabilityRow capability={c} />}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data && (
        <p className="dim small">
          Lists the models that you may use and that are known to have the capability. Unknown capabilities{" "}
          {data.trustsUnknown ? "count as present" : "count as missing"}.
        </p>
      )}
      {silent && rows.length > 0 && <p className="dim small">Which of these are enforced, and which models have them: {silent}.</p>}
    </section>
  );
}

function CapabilityRow({ capability: { id, details } }: { capability: Capability }): ReactNode {
  if (!details) {
    return (
      <>
        <td className="dim">not published</td>
        <td className="dim">not published</td>
      </>
    );
  }
  return (
    <>
      <td>
        <YesNo yes={details.enforced} words={["yes", "nothing requires it"]} />
        {details.requiredBy.length > 0 && (
          <details>
            <summary>
              by {details.requiredBy.length === 1 ? "1 type" : `${details.requiredBy.length} types`} of nodes<span className="unseen"> that require {id}</span>
            </summary>
            <ul>
              {details.requiredBy.map((type) => (
                <li key={type}>
                  <code>
                    <Name text={type} />
                  </code>
                </li>
              ))}
            </ul>
          </details>
        )}
      </td>
      <td>{details.by.length === 0 ? <span className="dim">none known</span> : details.by.map((m) => <Provider key={m.provider} id={id} models={m} />)}</td>
    </>
  );
}

/** Number of models initially shown per provider. */
const few = 3;

function Provider({ id, models: { provider, models, ownKey } }: { id: string; models: Models }): ReactNode {
  const names = models.map((model) => (
    <code key={model} className="chip">
      <Name text={model} />
    </code>
  ));
  return (
    <div className="of-provider">
      <strong>
        <Name text={provider} />
      </strong>
      {ownKey && <span className="dim"> with your own key</span>}{" "}
      {names.length <= few ? (
        names
      ) : (
        <details>
          <summary>
            {names.length} models<span className="unseen"> of {provider} that have {id}</span>
          </summary>
          {names}
        </details>
      )}
    </div>
  );
}

function YesNo({ yes, words: [good, other] }: { yes: boolean; words: [string, string] }): ReactNode {
  return (
    <span className={yes ? "status good" : "status idle"}>
      <Icon name={yes ? "check" : "minus"} />
      {yes ? good : other}
    </span>
  );
}

const hour = 3_600_000;

/** Model substitutions of the last hour. Hidden if the host does not publish them. */
export function Substitutions(): ReactNode {
  const { data, error, refetch, isFetching, dataUpdatedAt } = useQuery({
    queryKey: ["model-substitutions"],
    queryFn: ({ signal }) => body(api.GET("/v1/models:substitutions", { signal })),
    staleTime: 10_000,
    retry: false,
  });
  const silent = missingReason(error, "runs:read");
  if (!data && !error) return null;
  return (
    <section aria-labelledby="substitutions">
      <h2 id="substitutions">Substitutions in the last hour</h2>
      {silent ? <p className="dim small">Substituted models: {silent}.</p> : error && !data && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data && (
        <>
          {data.substitutions.length === 0 ? <p>No substitutions.</p> : <SubstitutionTable rows={data.substitutions} />}
          <p className="dim small">
            {/* The host limits the number of counted substitutions and reports the start of the period. */}
            {Date.parse(data.since) > dataUpdatedAt - hour + 60_000 ? "The host counts only the latest substitutions. Counted" : "Counted"} since {clock(data.since).slice(0, 8)}.{" "}
            <button type="button" className="quiet" disabled={isFetching} onClick={() => void refetch()}>
              Refresh
            </button>
          </p>
        </>
      )}
    </section>
  );
}

function SubstitutionTable({ rows }: { rows: readonly Substitution[] }): ReactNode {
  return (
    <div className="scroll" role="region" aria-label="Model substitutions" tabIndex={0}>
      <table className="gate-table">
        <thead>
          <tr>
            <th scope="col">Requested model</th>
            <th scope="col">Used model</th>
            <th scope="col">Missing capability</th>
            <th scope="col" className="num">
              Count
            </th>
            <th scope="col">Last</th>
            <th scope="col">Runs</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((s) => (
            <tr key={[s.originalProvider, s.originalModel, s.fallbackProvider, s.fallbackModel].join("\n")}>
              <th scope="row">
                <Model provider={s.originalProvider} model={s.originalModel} />
              </th>
              <td>{withheld(s) ? <Redacted /> : <Model provider={s.fallbackProvider} model={s.fallbackModel} />}</td>
              <td>
                {s.missingCapabilities.map((id) => (
                  <code key={id} className="chip">
                    <Name text={id} />
                  </code>
                ))}
              </td>
              <td className="num">{s.count.toLocaleString("en")}</td>
              <td className="nowrap">
                <Ago at={s.lastAt} />
              </td>
              <td>
                {s.runIds.map((id) => (
                  <Link key={id} href={`/runs/${encodeURIComponent(id)}`} className="gate-run">
                    {shortId(id)}
                  </Link>
                ))}
                {s.runs > s.runIds.length && <span className="dim">and {(s.runs - s.runIds.length).toLocaleString("en")} more</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Model({ provider, model }: { provider: string; model: string }): ReactNode {
  return (
    <code>
      <Name text={`${provider}·${model}`} />
    </code>
  );
}
