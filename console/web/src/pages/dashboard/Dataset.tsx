import { useEffect, useId, useState, type ReactNode } from "react";
import { api, body } from "../../api/client";
import { stringifyJson } from "../../api/json";
import { announce } from "../../ui/announce";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { save } from "../run/export";
import { runsFilter, type View } from "./view";

/** The most answers in one file. */
const most = 20_000;

const outcomes = [
  { id: "accepted", name: "Accepted answers" },
  { id: "refused", name: "Refused answers" },
  { id: "", name: "All answers" },
] as const;

type Outcome = (typeof outcomes)[number]["id"];

/** Saves the answers of the span as a dataset: one JSON document per line. */
export function Dataset({ view }: { view: View }): ReactNode {
  const id = useId();
  const [outcome, setOutcome] = useState<Outcome>("accepted");
  const [status, setStatus] = useState("");
  const [error, setError] = useState<unknown>();
  const [loading, setLoading] = useState<AbortController>();
  useEffect(() => () => loading?.abort(), [loading]);
  const end = (words: string): void => {
    setLoading(undefined);
    setStatus(words);
    announce(words);
  };
  const start = (): void => {
    const stop = new AbortController();
    setLoading(stop);
    setError(undefined);
    setStatus("Loading answers…");
    collect(runsFilter(view), outcome, stop.signal, (n) => setStatus(`${n.toLocaleString("en")} answers loaded…`)).then(
      ({ lines, more }) => {
        if (lines.length > 0) save(`waybill-answers-${view.span.id}.jsonl`, "application/jsonl", [lines.join("")]);
        end(lines.length === 0 ? "There are no such answers in this span." : `Saved ${lines.length.toLocaleString("en")} answers${more ? ", the newest. Choose a shorter span for the others" : ""}.`);
      },
      (reason: unknown) => {
        if (!stop.signal.aborted) setError(reason);
        end(stop.signal.aborted ? "Cancelled." : "");
      },
    );
  };
  return (
    <section className="dash-dataset" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>Export as a dataset</h2>
      <p className="dim small">A file of JSON lines: each answer with its prompt, model, outcome, refusals, cost and annotations. A prompt is included if its workflow records prompts in full.</p>
      <div className="dash-choices">
        <label htmlFor={id} className="unseen">
          Answers to export
        </label>
        <select id={id} value={outcome} onChange={({ target }) => setOutcome(target.value as Outcome)}>
          {outcomes.map((o) => (
            <option key={o.id} value={o.id}>
              {o.name}
            </option>
          ))}
        </select>
        {loading ? (
          <button type="button" onClick={() => loading.abort()}>
            Cancel
          </button>
        ) : (
          <button type="button" onClick={start}>
            <Icon name="save" /> Save as JSON lines
          </button>
        )}
        <span className="dim small">{status}</span>
      </div>
      {error !== undefined && <ErrorNote error={error} onRetry={start} />}
    </section>
  );
}

/** Reads the answers of the runs that match a filter, newest run first. */
async function collect(filter: string, outcome: Outcome, signal: AbortSignal, progress: (n: number) => void): Promise<{ lines: string[]; more: boolean }> {
  const lines: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await body(api.GET("/v1/answers", { params: { query: { filter, limit: 100, ...(outcome ? { outcome } : {}), ...(cursor ? { cursor } : {}) } }, signal }));
    for (const answer of page.answers) lines.push(`${stringifyJson(answer)}\n`);
    cursor = page.nextCursor;
    progress(lines.length);
  } while (cursor && lines.length < most);
  return { lines, more: cursor !== undefined };
}
