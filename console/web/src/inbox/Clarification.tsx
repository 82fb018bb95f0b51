import { useId, useRef, useState, type ReactNode } from "react";
import { record, text } from "../ladder/events";
import { Field, valueOf, type Draft } from "./Fields";
import { violations } from "./schema";
import { declinable, type KindProps } from "./question";

/** Questions with one answer each, validated here and sent as a map by question id. Those of a model can be declined. */
export function Clarification({ question, blocked, busy, places, answer }: KindProps): ReactNode {
  const prefix = useId();
  const list = Array.isArray(question.data.questions) ? question.data.questions.map(record) : [];
  const [drafts, setDrafts] = useState<Map<string, Draft>>(new Map());
  const [wrong, setWrong] = useState<Map<string, string>>(new Map());
  const form = useRef<HTMLFormElement>(null);
  const submit = (): void => {
    const answers = Object.create(null) as Record<string, unknown>;
    const found = new Map<string, string>();
    for (const q of list) {
      const id = text(q.id) ?? "";
      const v = valueOf(q.schema, drafts.get(id));
      const why = v.wrong ?? violations(q.schema, v.value).values().next().value;
      if (why === undefined) answers[id] = v.value;
      else found.set(id, why);
    }
    setWrong(found);
    const [first] = found.keys();
    if (first === undefined) answer({ answers });
    else form.current?.querySelector<HTMLElement>(`#${CSS.escape(prefix + first)}`)?.focus();
  };
  return (
    <form
      ref={form}
      noValidate
      className="question-form"
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      {list.map((q) => {
        const id = text(q.id) ?? "";
        return (
          <Field
            key={id}
            id={prefix + id}
            label={text(q.question) ?? id}
            hint={text(record(q.schema).description)}
            schema={q.schema}
            draft={drafts.get(id)}
            wrong={wrong.get(id) ?? places.get(`/answers/${id.replaceAll("~", "~0").replaceAll("/", "~1")}`)}
            disabled={blocked !== undefined}
            onChange={(d) => {
              setDrafts(new Map(drafts).set(id, d));
              setWrong(new Map([...wrong].filter(([other]) => other !== id)));
            }}
          />
        );
      })}
      <div className="decisions">
        <button type="submit" className="primary" disabled={busy || blocked !== undefined}>
          Send {list.length === 1 ? "the answer" : "the answers"}
        </button>
        {declinable(question) && (
          <button type="button" disabled={busy || blocked !== undefined} onClick={() => answer({ declined: true })}>
            Decline to answer
          </button>
        )}
      </div>
    </form>
  );
}
