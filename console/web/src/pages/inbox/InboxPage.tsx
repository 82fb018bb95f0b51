import { useState, type ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { useTitle } from "../../ui/title";
import { CopyAs } from "../../copyas/CopyAs";
import { answerRequest } from "../../copyas/requests";
import { findResolution, isUntrusted, provenanceIn, resolutionIn, sendTo, useInbox, type Inbox, type Item } from "../../inbox/host";
import { approvers, kindLook, titleOf, votesInWords } from "../../inbox/question";
import { QuestionCard } from "../../inbox/QuestionCard";
import { When } from "../../inbox/When";
import { useRunLog } from "../../live/useRunLog";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { shortId } from "../../ui/Id";
import { Name, Text } from "../../ui/Text";

export default function InboxPage(): ReactNode {
  const inbox = useInbox(true);
  const [search] = useSearchParams();
  const wanted = search.get("i");
  const items = inbox.items ?? [];
  const listed = items.find((i) => i.question.interruptId === wanted) ?? (wanted === null && inbox.settled ? (items.find((i) => inbox.mine.has(i.question.interruptId)) ?? items[0]) : undefined);
  // An opened question stays visible after it is answered and removed from the list.
  const [held, hold] = useState<Item>();
  if (listed && listed !== held && (held === undefined || wanted !== null || held.question.interruptId === listed.question.interruptId)) hold(listed);
  const shown = wanted === null ? (held ?? listed) : (listed ?? (held?.question.interruptId === wanted ? held : undefined));
  const count = inbox.items?.length ?? 0;
  useTitle(count > 0 ? `Inbox (${count})` : "Inbox");
  return (
    <>
      <div className="page-head">
        <h1>Inbox{count > 0 ? ` (${count})` : ""}</h1>
        {inbox.at > 0 && inbox.error && !inbox.reader && <span className="dim small">as of {new Date(inbox.at).toLocaleTimeString("en-GB")}</span>}
      </div>
      {inbox.reader && (
        <p className="note idle">
          This key can read runs but not answer questions: it lacks the scope <code>approvals:respond</code>.
        </p>
      )}
      {inbox.error && !inbox.items && <ErrorNote error={inbox.error} onRetry={inbox.refetch} />}
      {inbox.items && items.length === 0 && !shown && wanted === null && (
        <div className="empty">
          <p>No open questions.</p>
          <p>
            A question appears here when a run reaches a gate or its model asks one: <code>core.approvalGate</code>, <code>core.clarificationGate</code>, <code>core.interrupt</code>.
          </p>
        </div>
      )}
      {(items.length > 0 || shown || (inbox.items && wanted !== null)) && (
        <div className={wanted === null ? "inbox" : "inbox opened"}>
          <nav aria-label="Questions" className="inbox-list">
            {items.map((i) => (
              <Entry key={i.question.interruptId} item={i} current={i.question.interruptId === shown?.question.interruptId} mine={inbox.mine.has(i.question.interruptId)} />
            ))}
          </nav>
          {shown ? <Opened item={shown} inbox={inbox} key={shown.question.interruptId} /> : <p className="empty">This question is no longer open.</p>}
        </div>
      )}
    </>
  );
}

function Entry({ item: { question, workflowId }, current, mine }: { item: Item; current: boolean; mine: boolean }): ReactNode {
  const look = kindLook(question);
  return (
    <Link href={`/inbox?i=${encodeURIComponent(question.interruptId)}`} aria-current={current ? "true" : undefined}>
      <span className="inbox-title">
        <Text text={titleOf(question)} />
      </span>
      <span className="inbox-meta">
        <span>
          <Icon name={look.icon} /> {look.word}
        </span>
        <span>
          <Name text={workflowId} />
        </span>
        {question.votes && <span>{votesInWords(question.votes)}</span>}
        {question.requestedAt && <When at={question.requestedAt} />}
        {!mine && <span>for others</span>}
      </span>
    </Link>
  );
}

function Opened({ item: { runId, workflowId, question }, inbox }: { item: Item; inbox: Inbox }): ReactNode {
  const log = useRunLog(runId);
  const path = `/runs/${encodeURIComponent(runId)}`;
  const blocked = inbox.reader
    ? "Your key cannot answer: it lacks the scope approvals:respond."
    : inbox.mine.size > 0 && !inbox.mine.has(question.interruptId) && approvers(question.data) !== undefined
      ? `Your key cannot answer this question: it is for ${approvers(question.data) ?? "others"}.`
      : undefined;
  return (
    <div>
      <p className="inbox-back">
        <Link href="/inbox">All questions</Link>
      </p>
      <QuestionCard
        question={question}
        send={sendTo(runId, question.nodeId)}
        blocked={blocked}
        untrusted={isUntrusted(log, question.interruptId)}
        provenance={provenanceIn(log.events, question.nodeId)}
        resolved={resolutionIn(log.events, question.interruptId)}
        runPath={path}
        find={() => findResolution(runId, question.interruptId)}
        onDone={inbox.refetch}
        extra={
          <Link href={path} className="small">
            <Name text={workflowId} /> {shortId(runId)}
          </Link>
        }
      />
      <div className="question-copy">
        <CopyAs request={answerRequest(runId, question.nodeId, example(question.kind))} label="Copy answer as" />
      </div>
    </div>
  );
}

function example(kind: string): unknown {
  if (kind === "approval") return { action: "accept" };
  if (kind === "clarification") return { answers: {} };
  return {};
}
