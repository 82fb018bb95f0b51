import { useEffect, useRef, type ReactNode } from "react";
import { Link } from "wouter";
import type { Provenance } from "../a2ui/SurfaceForm";
import { ApiError, UnreachableError } from "../api/errors";
import { Explanation } from "../explain/Explanation";
import { explain } from "../explain/explain";
import { text } from "../ladder/events";
import { Icon } from "../ui/Icon";
import { Name, Text } from "../ui/Text";
import { Approval } from "./Approval";
import { Clarification } from "./Clarification";
import { Custom, External, Form, LowConfidence } from "./Others";
import { approvers, isForm, kindLook, titleOf, votesInWords, type KindProps, type Question } from "./question";
import { useAnswer, type Answering, type Elsewhere, type Send } from "./useAnswer";
import { Due, When } from "./When";
import { JsonView } from "../ui/JsonView";
import { Payload } from "../media/Payload";
import type { Json } from "../api/json";
import "./inbox.css";
import "../styles/form.css";

type Props = {
  question: Question;
  send: Send;
  blocked?: string | undefined;
  untrusted?: boolean | undefined;
  provenance?: Provenance;
  /** The answer found in the run, if there is one. */
  resolved?: Elsewhere | undefined;
  runPath?: string | undefined;
  find?: (() => Promise<Elsewhere | undefined>) | undefined;
  onDone?: () => void;
  /** Additional content of the card's header. */
  extra?: ReactNode;
  /** The way to the next question; it gets the focus after an answer. */
  next?: ReactNode;
  /** Level of the card's heading. */
  level?: 2 | 3;
};

/** A question with its context and the form to answer it. */
export function QuestionCard(props: Props): ReactNode {
  const { question, send, find, onDone, resolved, runPath, extra, level = 2 } = props;
  const { answering, answer } = useAnswer({ send, find, onDone });
  const look = kindLook(question);
  const Heading = `h${level}` as "h2";
  const outcome = useRef<HTMLDivElement>(null);
  const over = answering.state === "answered" || answering.state === "elsewhere";
  // The pressed button is removed, so focus moves to the outcome.
  useEffect(() => {
    if (over) (outcome.current?.querySelector<HTMLElement>(".next-question") ?? outcome.current)?.focus();
  }, [over]);
  const votes = answering.state === "counted" && answering.votes ? answering.votes : question.votes;
  return (
    <article className="question card">
      <header>
        <div className="question-kind">
          <span className="status ask">
            <Icon name={look.icon} />
            {look.word}
          </span>
          {votes && <span className="votes">{votesInWords(votes)}</span>}
          {question.level > 0 && <span className="status hold">escalated, level {question.level}</span>}
          {props.untrusted && <span className="status ask">untrusted content</span>}
          {extra}
        </div>
        <Heading>
          <Text text={titleOf(question)} />
        </Heading>
        <p className="dim small">
          {question.nodeId && <>node <Name text={question.nodeId} /> · </>}
          {question.requestedAt && (
            <>
              asked <When at={question.requestedAt} />
            </>
          )}
          {question.dueAt && (
            <>
              {" "}
              · <Due at={question.dueAt} />
            </>
          )}
          {approvers(question.data) && <> · for <Name text={approvers(question.data) ?? ""} /></>}
        </p>
      </header>
      {over || (resolved && answering.state !== "sending") ? (
        <div ref={outcome} tabIndex={-1} className="question-over">
          <Over answering={answering} resolved={resolved} runPath={runPath} />
          {props.next && <p className="ways">{props.next}</p>}
          <Reviewed question={question} value={answering.state === "answered" ? answering.value : ((answering.state === "elsewhere" ? answering.found : undefined) ?? resolved)?.value} />
        </div>
      ) : (
        <>
          {answering.state === "counted" && (
            <p className="note good">
              {answering.action === "ask" ? "Your question was sent; the gate stays open." : `Your vote was counted: ${answering.votes ? votesInWords(answering.votes) : ""}.`}
            </p>
          )}
          <Kind {...props} busy={answering.state === "sending"} places={answering.state === "refused" ? answering.places : none} answer={answer} />
          {props.blocked && <p className="note idle blocked">{props.blocked}</p>}
          {answering.state === "refused" && <Refused error={answering.error} />}
        </>
      )}
    </article>
  );
}

const none = new Map<string, string>();

function Kind(props: Props & { busy: boolean; places: Map<string, string>; answer: (v: unknown) => void }): ReactNode {
  const { question } = props;
  const part: KindProps = {
    question, blocked: props.blocked, busy: props.busy, places: props.places, untrusted: props.untrusted, answer: props.answer,
    provenance: props.provenance ?? { nodeId: question.nodeId || undefined },
  };
  if (question.kind === "approval") return <Approval {...part} />;
  if (question.kind === "clarification") return <Clarification {...part} />;
  if (question.kind === "external-event") return <External {...part} />;
  if (question.kind === "low-confidence") return <LowConfidence {...part} />;
  return isForm(question) ? <Form {...part} /> : <Custom {...part} />;
}

function Over({ answering, resolved, runPath }: { answering: Answering; resolved: Elsewhere | undefined; runPath: string | undefined }): ReactNode {
  const link = runPath && <Link href={runPath}>See the run</Link>;
  if (answering.state === "answered") {
    return (
      <p className="note good">
        <strong>Answered{answering.action ? `: ${answering.action}` : ""}.</strong> {answering.status ? `The run is ${answering.status.replaceAll("-", " ")}.` : ""} {link}
      </p>
    );
  }
  const who = answering.state === "elsewhere" ? answering.found : resolved;
  const code = answering.state === "elsewhere" ? answering.code : undefined;
  if (who || code === undefined || code === "interrupt_already_resolved") {
    return (
      <p className="note idle">
        <strong>{who?.action === "timeout" && !who.by ? "Not answered in time" : <>Already answered{who?.by ? <> by <Name text={who.by} /></> : who ? "" : ", or asked again"}</>}</strong>
        {who?.action && who.action !== "timeout" ? <>: <Name text={who.action} /></> : ""}
        {who?.at ? (
          <>
            , <When at={who.at} />
          </>
        ) : (
          ""
        )}
        . {link}
      </p>
    );
  }
  return (
    <div className="note idle">
      <p>
        <strong>{code === "interrupt_expired" ? "The deadline for an answer has passed." : "This question is closed."}</strong> {explain(code)?.meaning} {link}
      </p>
    </div>
  );
}

/** What was decided about, and the answer. */
function Reviewed({ question, value }: { question: Question; value: Json | undefined }): ReactNode {
  const { data } = question;
  const described = text(data.description);
  return (
    <>
      {described && (
        <p>
          <Text text={described} />
        </p>
      )}
      {question.kind === "approval" && data.artifactData !== undefined && data.artifactData !== null && (
        <details>
          <summary>What was reviewed</summary>
          <div className="artifact">
            <Payload kind={text(data.artifactType)} payload={data.artifactData as Json} />
          </div>
        </details>
      )}
      {Array.isArray(data.questions) && <JsonView value={data.questions as Json} open={2} />}
      {value !== undefined && (
        <section aria-label="The answer">
          <h3>The answer</h3>
          <JsonView value={value} open={3} />
        </section>
      )}
    </>
  );
}

/** Explains a rejected answer; a plain 403 is never shown alone. */
function Refused({ error }: { error: unknown }): ReactNode {
  if (error instanceof ApiError) {
    return (
      <div className="note bad" role="alert">
        <Explanation code={error.code} message={error.message} />
        {error.code === "forbidden" && text(error.details?.scopeRequired) && <p>The key lacks the scope {text(error.details?.scopeRequired)}.</p>}
      </div>
    );
  }
  return (
    <p className="note bad" role="alert">
      {error instanceof UnreachableError
        ? "The host did not respond. Your answer may have arrived. You can send it again; it counts once."
        : `${error instanceof Error ? error.message : "The answer could not be sent."} The answer was not recorded. Try again.`}
    </p>
  );
}
