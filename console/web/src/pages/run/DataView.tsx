import type { ReactNode } from "react";
import { stringifyJson, type Json } from "../../api/json";
import type { RunSnapshot } from "../../api/model";
import { CopyButton } from "../../ui/CopyButton";
import { JsonView } from "../../ui/JsonView";
import { countRedactions, Redacted } from "../../ui/Text";

const parts = [
  ["inputs", "Inputs"],
  ["outputs", "Outputs"],
  ["variables", "Variables"],
  ["channels", "Channels"],
  ["configurable", "Configurable"],
  ["metadata", "Metadata"],
] as const;

/** Shows the inputs, outputs and state of a run. */
export function DataView({ snapshot, untold }: { snapshot: RunSnapshot | undefined; untold: boolean }): ReactNode {
  if (untold) return <p className="empty">The state at that event is not available.</p>;
  if (!snapshot) return <p className="loading">Loading…</p>;
  const shown = parts.filter(([name]) => snapshot[name] && Object.keys(snapshot[name]).length > 0);
  if (shown.length === 0) return <p className="empty">This run has neither inputs nor variables.</p>;
  return (
    <div className="data">
      {shown.map(([name, word]) => (
        <DataPart key={name} word={word} value={snapshot[name] as Json} />
      ))}
    </div>
  );
}

function DataPart({ word, value }: { word: string; value: Json }): ReactNode {
  const written = stringifyJson(value);
  const taken = countRedactions(written);
  return (
    <section className="card" aria-label={word}>
      <div className="card-head">
        <h2>{word}</h2>
        {taken > 0 && (
          <span className="small">
            <Redacted /> {taken} {taken === 1 ? "time" : "times"}
          </span>
        )}
        <CopyButton text={() => stringifyJson(value, 2)} what={word.toLowerCase()} />
      </div>
      <JsonView value={value} open={2} />
    </section>
  );
}
