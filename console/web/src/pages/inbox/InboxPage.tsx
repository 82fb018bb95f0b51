import { useEffect, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { useShortcuts } from "../../app/keys";
import { useSubject } from "../../inbox/assign";
import { choices, filterOf, select, withFilter } from "../../inbox/filter";
import { mostItems, useAnswered, useInbox, type Item } from "../../inbox/host";
import { approvers, kindLook, titleOf, votesInWords } from "../../inbox/question";
import { Due, When } from "../../inbox/When";
import { Empty } from "../../ui/Empty";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { Name, Text } from "../../ui/Text";
import { dayTime, useNow } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { BulkAnswer } from "./BulkAnswer";
import { bulkable, offers, type BulkAction } from "./bulk";
import { control } from "./control";
import { Filters } from "./Filters";
import { Opened, OpenedById } from "./Opened";
import "../runs/runs.css";

/** The questions of runs for people: the open ones, and those answered on a day. */
export default function InboxPage(): ReactNode {
  const [search] = useSearchParams();
  const answered = search.get("view") === "answered";
  useTitle("Inbox");
  return (
    <>
      <div className="page-head">
        <h1>Inbox</h1>
        <nav aria-label="Views" className="tabs">
          <Link href="/inbox" aria-current={answered ? undefined : "page"}>
            Open
          </Link>
          <Link href="/inbox?view=answered" aria-current={answered ? "page" : undefined}>
            Answered
          </Link>
        </nav>
      </div>
      {answered ? <Answered search={search} /> : <Open search={search} />}
    </>
  );
}

const idOf = (item: Item): string => item.question.interruptId;

/** The address of a question. It names the run, so that the question is found after it was answered. */
function addressOf(item: Item, search: URLSearchParams): string {
  const to = new URLSearchParams(search);
  to.set("i", idOf(item));
  to.set("run", item.runId);
  return `/inbox?${to.toString()}`;
}

function Open({ search }: { search: URLSearchParams }): ReactNode {
  const inbox = useInbox(true);
  const [, navigate] = useLocation();
  const now = useNow();
  const filter = filterOf(search);
  const wanted = search.get("i");
  const all = inbox.items ?? [];
  const me = useSubject();
  const items = select(all, filter, now, me);
  const settled = inbox.items !== undefined;
  const listed = wanted === null ? (settled ? (items.find((i) => i.answerable) ?? items[0]) : undefined) : all.find((i) => idOf(i) === wanted);
  // An opened question stays visible after it is answered and removed from the list; its place shows which one is next.
  const [held, hold] = useState<{ item: Item; place: number }>();
  if (listed && (held === undefined || wanted !== null || idOf(held.item) === idOf(listed))) {
    const place = items.findIndex((i) => idOf(i) === idOf(listed));
    if (held?.item !== listed || (place >= 0 && held.place !== place)) hold({ item: listed, place: place < 0 ? (held?.place ?? 0) : place });
  }
  const isHeld = held !== undefined && (wanted === null || idOf(held.item) === wanted);
  const shown = wanted === null ? (held?.item ?? listed) : (listed ?? (isHeld ? held.item : undefined));
  const at = shown ? items.findIndex((i) => idOf(i) === idOf(shown)) : -1;
  const others = items.filter((i) => shown === undefined || idOf(i) !== idOf(shown));
  const following = others[at >= 0 ? at : (held?.place ?? 0)] ?? others[0];
  const go = (item: Item | undefined): void => {
    if (item) navigate(addressOf(item, search), { replace: true });
  };

  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const [asked, ask] = useState<{ action: BulkAction; items: Item[] }>();
  const selectable = items.filter(bulkable);
  const selected = selectable.filter((i) => chosen.has(idOf(i)));
  const toggle = (item: Item): void => choose(chosen.has(idOf(item)) ? new Set([...chosen].filter((id) => id !== idOf(item))) : new Set([...chosen, idOf(item)]));

  useListKeys(
    () => go(at >= 0 ? items[at + 1] : following),
    () => go(items[(at >= 0 ? at : (held?.place ?? 0)) - 1]),
    () => {
      if (shown && bulkable(shown)) toggle(shown);
    },
  );
  const mine = all.filter((i) => i.answerable).length;
  return (
    <>
      {inbox.reader && (
        <p className="note idle">
          This key can read runs but not answer questions: it lacks the scope <code>approvals:respond</code>.
        </p>
      )}
      {inbox.error && !inbox.items && <ErrorNote error={inbox.error} onRetry={inbox.refetch} />}
      {inbox.error && inbox.items && !inbox.reader && <p className="dim small">As of {dayTime(new Date(inbox.at).toISOString())}: the host does not answer.</p>}
      {settled && all.length === 0 && !shown && wanted === null && (
        <Empty icon="inbox">
          <p>No open questions.</p>
          <p>
            A question appears here when a run reaches a gate or its model asks one: <code>core.approvalGate</code>, <code>core.clarificationGate</code>, <code>core.interrupt</code>.
          </p>
        </Empty>
      )}
      {all.length > 0 && <Filters items={all} filter={filter} change={(next) => navigate(`/inbox?${withFilter(search, next).toString()}`, { replace: true })} />}
      {(all.length > 0 || shown || (settled && wanted !== null)) && (
        <div className={wanted === null ? "inbox" : "inbox opened"}>
          <div className="inbox-side">
            <p className="inbox-total dim small">
              {items.length === all.length ? `${all.length} open` : `${items.length} of ${all.length} open`}
              {!inbox.reader && `, ${mine} for you`}
              {all.length >= mostItems && `. Only the newest ${mostItems.toLocaleString("en")} are loaded.`}
            </p>
            {selectable.length > 0 && (
              <div className="inbox-bulk" role="group" aria-label="Selected questions">
                <label className="check">
                  <input
                    type="checkbox"
                    checked={selected.length === selectable.length}
                    onChange={(e) => choose(new Set(e.target.checked ? selectable.map(idOf) : []))}
                  />
                  Select all {selectable.length} that can be answered together
                </label>
                {selected.length > 0 &&
                  (["accept", "reject"] as const).map((action) => {
                    const able = selected.filter((i) => offers(i, action));
                    return (
                      <button key={action} type="button" className={action === "reject" ? "danger" : undefined} disabled={able.length === 0} onClick={() => ask({ action, items: able })}>
                        {action === "accept" ? "Accept" : "Reject"} {able.length}…
                      </button>
                    );
                  })}
              </div>
            )}
            <nav aria-label="Questions" className="inbox-list">
              {items.map((i) => (
                <Entry key={idOf(i)} item={i} href={addressOf(i, search)} current={shown !== undefined && idOf(i) === idOf(shown)} chosen={bulkable(i) ? chosen.has(idOf(i)) : undefined} onChoose={() => toggle(i)} />
              ))}
              {items.length === 0 && all.length > 0 && <p className="empty">No question matches the filters.</p>}
            </nav>
          </div>
          {shown ? (
            <Opened key={idOf(shown)} item={shown} reader={inbox.reader} known={choices(all).assignees} refetch={inbox.refetch} next={following && <NextQuestion item={following} search={search} />} back={withoutQuestion(search)} />
          ) : wanted !== null && settled ? (
            <OpenedById key={wanted} runId={search.get("run")} interruptId={wanted} back={withoutQuestion(search)} next={items[0] && <NextQuestion item={items[0]} search={search} />} />
          ) : (
            <p className="empty">Choose a question.</p>
          )}
        </div>
      )}
      {asked && (
        <BulkAnswer
          action={asked.action}
          items={asked.items}
          onClose={(done) => {
            ask(undefined);
            if (!done) return;
            choose(new Set());
            inbox.refetch();
          }}
        />
      )}
    </>
  );
}

function withoutQuestion(search: URLSearchParams): string {
  const to = new URLSearchParams(search);
  to.delete("i");
  to.delete("run");
  return to.size > 0 ? `/inbox?${to.toString()}` : "/inbox";
}

function NextQuestion({ item, search }: { item: Item; search: URLSearchParams }): ReactNode {
  return (
    <Link href={addressOf(item, search)} replace className="button primary next-question">
      Next question<span className="unseen">: {titleOf(item.question)}</span>
    </Link>
  );
}

// No key answers: A and R move the focus to the button, which Enter presses.
function useListKeys(next: () => void, previous: () => void, toggle: () => void): void {
  useShortcuts([
    { keys: "j", does: "Next question", run: next },
    { keys: "k", does: "Previous question", run: previous },
    { keys: "x", does: "Select the question, to answer several together", run: toggle },
    { keys: "/", does: "Search questions", run: () => document.querySelector<HTMLElement>(".inbox-filters input")?.focus() },
    { keys: "a", does: "Focus Accept, or the button that sends the answer; Enter presses it", run: () => control("accept")?.focus() },
    { keys: "r", does: "Focus Reject; Enter presses it", run: () => control("reject")?.focus() },
    {
      keys: "e",
      does: "Edit before accepting",
      run: () => {
        const button = control("edit-accept");
        if (button?.getAttribute("aria-expanded") === "false") button.click();
        requestAnimationFrame(() => control("edit")?.focus());
      },
    },
    { keys: "m", does: "Focus Claim, which assigns the question to you, or Release; Enter presses it", run: () => control("claim")?.focus() },
    { keys: "c", does: "Write a comment, or the first answer", run: () => control("comment")?.focus() },
  ]);
}

type EntryProps = { item: Item; href: string; current: boolean; chosen?: boolean | undefined; onChoose?: () => void };

function Entry({ item: { question, workflowId, answer, answerable, assignment }, href, current, chosen, onChoose }: EntryProps): ReactNode {
  const look = kindLook(question);
  const me = useSubject();
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (current) link.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <div className="inbox-entry" data-current={current}>
      {chosen !== undefined && <input type="checkbox" aria-label={`Select ${titleOf(question)}`} checked={chosen} onChange={onChoose} />}
      <Link href={href} aria-current={current ? "true" : undefined} ref={link}>
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
          {answer ? (
            <span>
              <Name text={answer.action ?? "answered"} />
              {answer.by && <> by <Name text={answer.by} /></>}
            </span>
          ) : (
            <>
              {question.dueAt && <Due at={question.dueAt} />}
              {assignment && (
                <span className="assigned">
                  <Icon name="person" /> <span className="unseen">assigned to </span>
                  {assignment.assignee === me ? "you" : <Name text={assignment.assignee} />}
                </span>
              )}
              {question.votes && <span>{votesInWords(question.votes)}</span>}
              {approvers(question.data) !== undefined ? <span>for <Name text={approvers(question.data) ?? ""} /></span> : !answerable && <span>for others</span>}
            </>
          )}
          {answer?.at ? <time dateTime={answer.at}>{dayTime(answer.at)}</time> : question.requestedAt && <When at={question.requestedAt} />}
        </span>
      </Link>
    </div>
  );
}

const dayMs = 86_400_000;
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

const to = (day: string): string => `/inbox?view=answered&day=${day}`;

function Answered({ search }: { search: URLSearchParams }): ReactNode {
  const [, navigate] = useLocation();
  const today = dayOf(useNow());
  const given = search.get("day") ?? today;
  const day = /^\d{4}-\d{2}-\d{2}$/.test(given) && Number.isFinite(Date.parse(given)) ? given : today;
  const { items, error, refetch } = useAnswered(day);
  const wanted = search.get("i");
  const shown = items?.find((i) => idOf(i) === wanted) ?? (wanted === null ? items?.[0] : undefined);
  const at = shown && items ? items.indexOf(shown) : -1;
  const go = (item: Item | undefined): void => {
    if (item) navigate(addressOf(item, search), { replace: true });
  };
  useListKeys(() => go(items?.[at + 1]), () => go(items?.[at - 1]), () => undefined);
  return (
    <>
      <div className="inbox-filters">
        <Link href={to(dayOf(Date.parse(day) - dayMs))} className="button" aria-label="The day before">
          <Icon name="left" />
        </Link>
        <label>
          <span className="unseen">Day in UTC</span>
          <input type="date" value={day} max={today} onChange={(e) => e.target.value && navigate(to(e.target.value), { replace: true })} />
        </label>
        {day < today && (
          <Link href={to(dayOf(Date.parse(day) + dayMs))} className="button" aria-label="The day after">
            <Icon name="right" />
          </Link>
        )}
        <span className="dim small">
          Days are in UTC{items && `. ${items.length} ${items.length === 1 ? "question" : "questions"} answered`}
        </span>
      </div>
      {error && <ErrorNote error={error} onRetry={refetch} />}
      {items?.length === 0 && (
        <Empty icon="inbox">
          <p>No question was answered on this day.</p>
          <p>
            <Link href={to(dayOf(Date.parse(day) - dayMs))}>Show the day before</Link>
          </p>
        </Empty>
      )}
      {items && items.length > 0 && (
        <div className={wanted === null ? "inbox" : "inbox opened"}>
          <div className="inbox-side">
            <nav aria-label="Questions" className="inbox-list">
              {items.map((i) => (
                <Entry key={idOf(i)} item={i} href={addressOf(i, search)} current={i === shown} />
              ))}
            </nav>
          </div>
          {shown ? <Opened key={idOf(shown)} item={shown} reader={false} known={[]} refetch={refetch} back={withoutQuestion(search)} /> : <p className="empty">Choose a question.</p>}
        </div>
      )}
    </>
  );
}
