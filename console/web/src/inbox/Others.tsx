// Forms for all kinds except approvals and clarifications: external events, low confidence, surfaces and custom kinds.
import { useId, useState, type ReactNode } from "react";
import { SurfaceForm } from "../a2ui/SurfaceForm";
import { stringifyJson, type Json } from "../api/json";
import { number, record, text } from "../ladder/events";
import { JsonView } from "../ui/JsonView";
import { Text } from "../ui/Text";
import { Field, valueOf, type Draft } from "./Fields";
import type { KindProps } from "./question";
import { violations } from "./schema";

/** A form written by a model or by the workflow's author. */
export function Form({ question, blocked, busy, provenance, answer }: KindProps): ReactNode {
  return <SurfaceForm payload={question.data.payload} provenance={provenance} titled partial={question.partial} blocked={blocked} busy={busy} onResume={answer} />;
}

/** An event of another system; a person can send it instead. */
export function External({ question, ...props }: KindProps): ReactNode {
  return (
    <div className="question-form">
      <p>
        The run continues when an event <code>{text(question.data.eventType)}</code> arrives with these members:
      </p>
      <JsonView value={record(question.data.correlation) as Json} />
      <details>
        <summary>Send the event manually</summary>
        <Raw question={question} {...props} initial={stringifyJson(question.data.correlation ?? {}, 2)} name="Event" send="Send the event" />
      </details>
    </div>
  );
}

/** A decision of an agent with low confidence. */
export function LowConfidence({ question, ...props }: KindProps): ReactNode {
  const { data } = question;
  const observed = number(data.observed) ?? 0;
  const threshold = number(data.threshold) ?? 0;
  return (
    <div className="question-form">
      <p>
        <code>{text(data.agentId)}</code> reported a confidence of {percent(observed)}; the threshold is {percent(threshold)}.
      </p>
      <meter className="confidence" min={0} max={1} low={threshold} value={observed} aria-label="Confidence">
        {percent(observed)}
      </meter>
      <Raw question={question} {...props} initial={stringifyJson({ decision: data.decision ?? null }, 2)} name="Decision" send="Send the decision" />
    </div>
  );
}

const percent = (n: number): string => `${Math.round(n * 100)} %`;

/** A question of a custom kind: fields if its schema has any, otherwise JSON. */
export function Custom({ question, ...props }: KindProps): ReactNode {
  const schema = record(question.resumeSchema);
  const shown = question.data.payload as Json | undefined;
  return (
    <div className="question-form">
      {shown !== undefined && <JsonView value={shown} />}
      {schema.type === "object" && Object.keys(record(schema.properties)).length > 0 ? (
        <Members question={question} {...props} />
      ) : (
        <Raw question={question} {...props} initial="" name="Answer" send="Send the answer" />
      )}
    </div>
  );
}

function Members({ question, blocked, busy, places, answer }: KindProps): ReactNode {
  const prefix = useId();
  const schema = record(question.resumeSchema);
  const properties = Object.entries(record(schema.properties));
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const [drafts, setDrafts] = useState<Map<string, Draft>>(new Map());
  const [wrong, setWrong] = useState<Map<string, string>>(new Map());
  const submit = (): void => {
    const value = Object.create(null) as Record<string, unknown>;
    const found = new Map<string, string>();
    for (const [name, of] of properties) {
      const draft = drafts.get(name);
      if (!required.has(name) && (draft === undefined || draft === "")) continue;
      const v = valueOf(of, draft);
      if (v.wrong === undefined) value[name] = v.value;
      else found.set(name, v.wrong);
    }
    for (const [at, why] of violations(question.resumeSchema, value)) {
      const name = at.slice(1);
      if (!found.has(name)) found.set(name, why);
    }
    setWrong(found);
    if (found.size === 0) answer({ ...value });
  };
  return (
    <form
      noValidate
      className="question-form"
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      {properties.map(([name, of]) => (
        <Field
          key={name}
          id={prefix + name}
          label={text(record(of).title) ?? name}
          hint={text(record(of).description)}
          schema={of}
          draft={drafts.get(name)}
          wrong={wrong.get(name) ?? places.get(`/${name}`)}
          disabled={blocked !== undefined}
          onChange={(d) => setDrafts(new Map(drafts).set(name, d))}
        />
      ))}
      {wrong.has("") && <p className="wrong">{wrong.get("")}</p>}
      <button type="submit" className="primary" disabled={busy || blocked !== undefined}>
        Send the answer
      </button>
    </form>
  );
}

function Raw({ question, blocked, busy, places, answer, initial, name, send }: KindProps & { initial: string; name: string; send: string }): ReactNode {
  const id = useId();
  const [draft, setDraft] = useState(initial);
  const [wrong, setWrong] = useState<string>();
  const shown = wrong ?? places.values().next().value;
  return (
    <form
      noValidate
      className="question-form"
      onSubmit={(e) => {
        e.preventDefault();
        try {
          const value = JSON.parse(draft) as unknown;
          const [why] = violations(question.resumeSchema, value);
          setWrong(why && `${why[0]} ${why[1]}`.trim());
          if (!why) answer(value);
        } catch {
          setWrong("This is not valid JSON.");
        }
      }}
    >
      <div className="field">
        <label htmlFor={id}>{name}, as JSON</label>
        <textarea
          id={id}
          className="mono"
          rows={5}
          spellCheck={false}
          value={draft}
          disabled={blocked !== undefined}
          aria-invalid={shown !== undefined}
          onChange={(e) => setDraft(e.target.value)}
        />
        {shown && (
          <p className="wrong">
            <Text text={shown} />
          </p>
        )}
      </div>
      <button type="submit" className="primary" disabled={busy || blocked !== undefined}>
        {send}
      </button>
    </form>
  );
}
