// Forms for all kinds except approvals and clarifications: external events, low confidence, surfaces and custom kinds.
import type { ReactNode } from "react";
import { SurfaceForm } from "../a2ui/SurfaceForm";
import type { Json } from "../api/json";
import { number, record, text } from "../ladder/events";
import { JsonView } from "../ui/JsonView";
import type { KindProps } from "./question";
import { ValueForm } from "./ValueForm";

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
        <Value {...props} question={question} initial={(question.data.correlation ?? {}) as Json} name="Event" send="Send the event" />
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
      <Value {...props} question={question} initial={{ decision: (data.decision ?? null) as Json }} name="Answer" send="Send the decision" />
    </div>
  );
}

const percent = (n: number): string => `${Math.round(n * 100)} %`;

/** A question of a custom kind: fields if its schema has any, otherwise JSON. */
export function Custom({ question, ...props }: KindProps): ReactNode {
  const shown = question.data.payload as Json | undefined;
  return (
    <div className="question-form">
      {shown !== undefined && <JsonView value={shown} />}
      <Value {...props} question={question} initial={undefined} name="Answer" send="Send the answer" />
    </div>
  );
}

function Value({ question, blocked, busy, places, answer, ...form }: KindProps & { initial: Json | undefined; name: string; send: string }): ReactNode {
  return <ValueForm {...form} declared={question.resumeSchema} off={busy || blocked !== undefined} places={places} onSend={answer} />;
}
