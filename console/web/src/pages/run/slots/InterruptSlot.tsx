import type { ReactNode } from "react";
import type { RunSnapshot } from "../../../api/model";
import { findResolution, isUntrusted, openIn, provenanceIn, resolutionIn, sendTo, useInbox } from "../../../inbox/host";
import { approvers, questionOf, type Question } from "../../../inbox/question";
import { QuestionCard } from "../../../inbox/QuestionCard";
import type { RunLog } from "../../../live/runLog";

type Props = { snapshot: RunSnapshot; log: RunLog };

/** Shows the open question of a waiting run. */
export function InterruptSlot({ snapshot, log }: Props): ReactNode {
  if (!snapshot.status.startsWith("waiting")) return null;
  // The snapshot hides the question from keys that cannot answer; the log has it for every reader.
  const question = snapshot.interrupt ? questionOf(snapshot.interrupt) : openIn(log.events)[0];
  return question && <Open snapshot={snapshot} log={log} question={question} />;
}

function Open({ snapshot, log, question }: Props & { question: Question }): ReactNode {
  // Only the list of questions has votes and approvers; the log updates the rest.
  const inbox = useInbox(question.votes !== undefined, snapshot.workflowId);
  const listed = inbox.items?.find((i) => i.question.interruptId === question.interruptId);
  const blocked = inbox.reader
    ? "Your key cannot answer: it lacks the scope approvals:respond."
    : listed && !listed.answerable && approvers(question.data) !== undefined
      ? `Your key cannot answer this question: it is for ${approvers(question.data) ?? "others"}.`
      : undefined;
  return (
    <QuestionCard
      key={question.interruptId}
      question={listed?.question ?? question}
      send={sendTo(snapshot.runId, question)}
      blocked={blocked}
      untrusted={isUntrusted(log, question.interruptId)}
      provenance={provenanceIn(log.events, question.nodeId)}
      resolved={resolutionIn(log.events, question.interruptId)}
      find={() => findResolution(snapshot.runId, question.interruptId)}
      onDone={inbox.refetch}
    />
  );
}
