import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { api, body, idempotencyKey } from "../../api/client";
import { isStatus } from "../../api/errors";
import type { components } from "../../api/schema";
import { Ago } from "../../ui/Ago";
import { announce } from "../../ui/announce";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name, Text } from "../../ui/Text";

type Annotation = components["schemas"]["Annotation"];
type Signal = components["schemas"]["AnnotationSignal"];

/** The signals of the form. A correction has the text that would have been right. */
const signals = [
  { id: "good", name: "Good", signal: (): Signal => ({ kind: "rating", rating: 5 }) },
  { id: "bad", name: "Bad", signal: (): Signal => ({ kind: "rating", rating: 1 }) },
  { id: "correction", name: "Correction", signal: (correction: string): Signal => ({ kind: "correction", correction }) },
  { id: "flag", name: "Needs a look", signal: (): Signal => ({ kind: "flag" }) },
] as const;

type Choice = (typeof signals)[number]["id"];

/** Feedback of people on a run, or on a node of it. A list for the run has that of its nodes, too. */
export function Feedback({ runId, nodeId }: { runId: string; nodeId?: string }): ReactNode {
  const id = useId();
  const { data, error } = useQuery({
    queryKey: ["annotations", runId],
    queryFn: ({ signal }) => body(api.GET("/v1/runs/{runId}/annotations", { params: { path: { runId } }, signal })),
    retry: false,
  });
  if (isStatus(error, 403, 404, 501)) return null;
  const all = (data?.annotations ?? []).filter((a) => nodeId === undefined || a.target.nodeId === nodeId);
  return (
    <details className="feedback">
      <summary id={id}>
        {nodeId === undefined ? "Feedback on the run" : "Feedback on the node"} {all.length > 0 && <span className="tab-count">{all.length}</span>}
      </summary>
      {error && <ErrorNote error={error} />}
      {all.length > 0 && (
        <ul aria-labelledby={id}>
          {all.map((a) => (
            <li key={a.annotationId}>
              <strong>{signalWords(a)}</strong>
              {nodeId === undefined && a.target.nodeId && (
                <>
                  {" "}
                  on <Name text={a.target.nodeId} />
                </>
              )}{" "}
              <span className="dim small">
                <Name text={a.actor.principalRef} />, <Ago at={a.createdAt} />
              </span>
              {a.signal.correction && <p><Text text={a.signal.correction} quoted /></p>}
              {a.note && <p><Text text={a.note} /></p>}
            </li>
          ))}
        </ul>
      )}
      <Form runId={runId} {...(nodeId === undefined ? {} : { nodeId })} />
    </details>
  );
}

function signalWords({ signal }: Annotation): string {
  switch (signal.kind) {
    case "rating":
      return `Rated ${signal.rating ?? "–"} of 5`;
    case "label":
      return `Label ${signal.label ?? ""}`;
    case "correction":
      return "Correction";
    default:
      return "Needs a look";
  }
}

function Form({ runId, nodeId }: { runId: string; nodeId?: string }): ReactNode {
  const id = useId();
  const client = useQueryClient();
  const [choice, setChoice] = useState<Choice>("good");
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>();
  const [key, setKey] = useState(idempotencyKey);
  const corrects = choice === "correction";
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setError(undefined);
    const signal = signals.find((s) => s.id === choice)?.signal(text) ?? { kind: "flag" };
    const request = { ...(nodeId === undefined ? {} : { target: { nodeId } }), signal, ...(text && !corrects ? { note: text } : {}) };
    body(api.POST("/v1/runs/{runId}/annotations", { params: { path: { runId }, header: { "Idempotency-Key": key } }, body: request })).then(
      () => {
        setText("");
        setKey(idempotencyKey());
        announce("Feedback saved");
        return client.invalidateQueries({ queryKey: ["annotations", runId] });
      },
      (reason: unknown) => setError(reason),
    );
  };
  return (
    <form onSubmit={submit}>
      <fieldset className="choices">
        <legend className="unseen">Feedback</legend>
        {signals.map((s) => (
          <label key={s.id} className="check">
            <input type="radio" name={id} checked={choice === s.id} onChange={() => setChoice(s.id)} />
            {s.name}
          </label>
        ))}
      </fieldset>
      <label htmlFor={`${id}-text`}>{corrects ? "What would have been right" : "Remark (optional)"}</label>
      <textarea id={`${id}-text`} rows={2} value={text} required={corrects} maxLength={8192} onChange={({ target }) => setText(target.value)} />
      <button type="submit">Save feedback</button>
      {error !== undefined && <ErrorNote error={error} />}
    </form>
  );
}
