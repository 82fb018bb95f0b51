import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useParams, useSearchParams } from "wouter";
import { fetchJson } from "../../api/client";
import { ApiError } from "../../api/errors";
import { isObject, type Json } from "../../api/json";
import type { RunEvent } from "../../api/model";
import { useTitle } from "../../ui/title";
import { CopyAs } from "../../copyas/CopyAs";
import { diffRequest } from "../../copyas/requests";
import { Explanation } from "../../explain/Explanation";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { JsonView } from "../../ui/JsonView";
import "./diff.css";
import { Changes } from "../../ui/Changes";
import { changes } from "../../ui/changes";
import { counting } from "./counting";
import { Name } from "../../ui/Text";
import "../../styles/form.css";

type Op = "added" | "removed" | "changed";
type EventDiff = { seq: number; op: Op; aEvent?: RunEvent; bEvent?: RunEvent };
type Report = {
  a: string;
  b: string;
  divergedAtSeq: number | null;
  eventDiffs: EventDiff[];
  stateDiff: { [name: string]: Json };
  truncated?: boolean;
};

const words: Record<Op, string> = { added: "added", removed: "removed", changed: "changed" };
const signs: Record<Op, string> = { added: "+", removed: "−", changed: "~" };

export default function DiffPage(): ReactNode {
  const params = useParams<{ runId?: string; against?: string }>();
  const [search] = useSearchParams();
  const a = params.runId ?? search.get("a") ?? "";
  const b = params.against ?? search.get("b") ?? "";
  useTitle(a && b ? `Compare ${shortId(a)} and ${shortId(b)}` : "Compare runs");
  return (
    <>
      <h1>{a && b ? `Compare ${shortId(a)} and ${shortId(b)}` : "Compare runs"}</h1>
      <Pair key={`${a} ${b}`} a={a} b={b} />
      {a && b && <Compared a={a} b={b} />}
    </>
  );
}

/** A form for the two run ids. */
function Pair({ a, b }: { a: string; b: string }): ReactNode {
  const id = useId();
  const [, navigate] = useLocation();
  const [one, setOne] = useState(a);
  const [other, setOther] = useState(b);
  return (
    <form
      className="pair"
      onSubmit={(e) => {
        e.preventDefault();
        if (one && other) navigate(`/runs/${encodeURIComponent(one.trim())}/diff/${encodeURIComponent(other.trim())}`);
      }}
    >
      <div className="field">
        <label htmlFor={`${id}a`}>Run A</label>
        <input id={`${id}a`} className="mono" value={one} spellCheck={false} autoComplete="off" onChange={(e) => setOne(e.target.value)} />
      </div>
      <div className="field">
        <label htmlFor={`${id}b`}>Run B</label>
        <input id={`${id}b`} className="mono" value={other} spellCheck={false} autoComplete="off" onChange={(e) => setOther(e.target.value)} />
      </div>
      <button type="submit">Compare</button>
    </form>
  );
}

function Compared({ a, b }: { a: string; b: string }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["diff", a, b],
    queryFn: ({ signal }) => fetchJson<Json>(`/v1/runs/${encodeURIComponent(a)}:diff?against=${encodeURIComponent(b)}`, { signal }),
    staleTime: 0,
  });
  if (error) return error instanceof ApiError && error.status < 500 ? <div className="note bad"><Explanation code={error.code} message={error.message} /></div> : <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return null;
  return <Shown key={`${a} ${b}`} report={data as unknown as Report} />;
}

function Shown({ report }: { report: Report }): ReactNode {
  const first = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const summary = first.current?.querySelector("summary");
    summary?.focus({ preventScroll: true });
    first.current?.scrollIntoView({ block: "center" });
  }, []);
  const states = Object.entries(report.stateDiff);
  const same = report.eventDiffs.length === 0 && states.length === 0;
  return (
    <>
      <div className="diff-verdict">
        {same ? (
          <p className="note good">
            <strong>No differences.</strong> The two went the same way, but for ids and times.
          </p>
        ) : (
          <p className="note swap">
            {report.divergedAtSeq === null ? (
              <strong>The events are the same; the states differ.</strong>
            ) : (
              <>
                <strong>First divergence at #{report.divergedAtSeq}.</strong> Before it {report.divergedAtSeq === 1 ? "1 event is" : `${report.divergedAtSeq} events are`} the same.
              </>
            )}{" "}
            {counts(report.eventDiffs)}
          </p>
        )}
        <CopyAs request={diffRequest(report.a, report.b)} />
      </div>
      {report.truncated && <p className="note ask">The diff is incomplete: a run is still active, or the diff exceeds the report limit.</p>}
      {report.eventDiffs.length > 0 && (
        <section aria-labelledby="events">
          <h2 id="events">Events</h2>
          <div className="diff-head" aria-hidden="true">
            <span>seq</span>
            <span />
            <span>A {shortId(report.a)}</span>
            <span>B {shortId(report.b)}</span>
          </div>
          <ol className="diff-events">
            {report.eventDiffs.map((d) => (
              <li key={`${d.seq} ${d.op}`} className={`op-${d.op}`}>
                <Pairing diff={d} a={report.a} b={report.b} {...(d.seq === report.divergedAtSeq ? { first } : {})} />
              </li>
            ))}
          </ol>
        </section>
      )}
      {states.length > 0 && (
        <section aria-labelledby="state">
          <h2 id="state">State</h2>
          <Changes list={states.flatMap(([name, value]) => changes(isObject(value) ? value.a : undefined, isObject(value) ? value.b : value, name))} names={["A", "B"]} same="The variables are the same." />
        </section>
      )}
    </>
  );
}

function counts(diffs: EventDiff[]): string {
  const ops: Op[] = ["changed", "added", "removed"];
  return ops
    .map((op) => [op, diffs.filter((d) => d.op === op).length] as const)
    .filter(([, n]) => n > 0)
    .map(([op, n]) => `${n} ${words[op]}`)
    .join(", ");
}

function Pairing({ diff, a, b, first }: { diff: EventDiff; a: string; b: string; first?: React.RefObject<HTMLDetailsElement | null> }): ReactNode {
  const [open, setOpen] = useState(first !== undefined);
  return (
    <details ref={first} open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <span className="diff-seq">#{diff.seq}</span>
        <span className={`diff-op op-${diff.op}`}>
          <span aria-hidden="true">{signs[diff.op]}</span> {words[diff.op]}
        </span>
        <Named event={diff.aEvent} />
        <Named event={diff.bEvent} />
      </summary>
      {open && (
        <div className="diff-body">
          {diff.aEvent && diff.bEvent ? <Changes list={changes(counting(diff.aEvent.payload), counting(diff.bEvent.payload))} names={["A", "B"]} same="The payloads are the same; type or node differ." /> : <JsonView value={(diff.aEvent ?? diff.bEvent)?.payload ?? null} open={2} />}
          <p className="small">
            {diff.aEvent && <Link href={`/runs/${encodeURIComponent(a)}?e=${diff.seq}`}>in A</Link>} {diff.bEvent && <Link href={`/runs/${encodeURIComponent(b)}?e=${diff.seq}`}>in B</Link>}
          </p>
        </div>
      )}
    </details>
  );
}

function Named({ event }: { event: RunEvent | undefined }): ReactNode {
  return <span className="diff-name">{event ? <><Name text={event.type} /> <span className="dim">{event.nodeId && <Name text={event.nodeId} />}</span></> : <span className="dim">nothing</span>}</span>;
}
