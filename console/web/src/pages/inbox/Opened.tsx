import type { ReactNode } from "react";
import { Link } from "wouter";
import { CopyAs } from "../../copyas/CopyAs";
import { answerRequest } from "../../copyas/requests";
import { Assignee } from "../../inbox/Assignee";
import { findResolution, isUntrusted, provenanceIn, questionIn, resolutionIn, sendTo, type Item } from "../../inbox/host";
import { approvers } from "../../inbox/question";
import { QuestionCard } from "../../inbox/QuestionCard";
import { useRunLog } from "../../live/useRunLog";
import { shortId } from "../../ui/Id";
import { Name } from "../../ui/Text";

type Props = { item: Item; reader: boolean; known: readonly string[]; refetch: () => void; back: string; next?: ReactNode };

/** The opened question of the inbox. */
export function Opened({ item, reader, known, refetch, back, next }: Props): ReactNode {
  const { runId, workflowId, question, answer } = item;
  const log = useRunLog(runId);
  const path = `/runs/${encodeURIComponent(runId)}`;
  const blocked = reader
    ? "Your key cannot answer: it lacks the scope approvals:respond."
    : !item.answerable && approvers(question.data) !== undefined
      ? `Your key cannot answer this question: it is for ${approvers(question.data) ?? "others"}.`
      : undefined;
  return (
    <div className="inbox-opened">
      <p className="inbox-back">
        <Link href={back}>All questions</Link>
      </p>
      {!answer && !reader && <Assignee item={item} known={known} />}
      <QuestionCard
        question={question}
        send={sendTo(runId, question)}
        blocked={blocked}
        untrusted={isUntrusted(log, question.interruptId)}
        provenance={provenanceIn(log.events, question.nodeId)}
        resolved={answer ?? resolutionIn(log.events, question.interruptId)}
        runPath={path}
        find={() => findResolution(runId, question.interruptId)}
        onDone={refetch}
        next={next}
        extra={
          <Link href={path} className="small">
            <Name text={workflowId} /> {shortId(runId)}
          </Link>
        }
      />
      {!answer && (
        <div className="question-copy">
          <CopyAs request={answerRequest(runId, question.nodeId, example(question.kind))} label="Copy answer as" />
        </div>
      )}
    </div>
  );
}

/** A question that is not in the list: with its run, it is shown with its answer. */
export function OpenedById({ runId, interruptId, back, next }: { runId: string | null; interruptId: string; back: string; next?: ReactNode }): ReactNode {
  return (
    <div className="inbox-opened">
      <p className="inbox-back">
        <Link href={back}>All questions</Link>
      </p>
      {runId === null ? <p className="empty">This question is no longer open.</p> : <Closed runId={runId} interruptId={interruptId} next={next} />}
    </div>
  );
}

function Closed({ runId, interruptId, next }: { runId: string; interruptId: string; next?: ReactNode }): ReactNode {
  const log = useRunLog(runId);
  const question = questionIn(log.events, interruptId);
  if (!question) return <p className="empty">This question is no longer open.</p>;
  return (
    <QuestionCard
      question={question}
      send={sendTo(runId, question)}
      resolved={resolutionIn(log.events, interruptId) ?? {}}
      runPath={`/runs/${encodeURIComponent(runId)}`}
      next={next}
    />
  );
}

function example(kind: string): unknown {
  if (kind === "approval") return { action: "accept" };
  if (kind === "clarification") return { answers: {} };
  return {};
}
