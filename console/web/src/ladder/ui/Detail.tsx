import type { ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import type { Json } from "../../api/json";
import { Explanation } from "../../explain/Explanation";
import { useIsRecorded } from "../../live/useRunLog";
import { Payload } from "../../media/Payload";
import { CopyButton } from "../../ui/CopyButton";
import { Id } from "../../ui/Id";
import { JsonView } from "../../ui/JsonView";
import { escapeHidden } from "../../ui/escape";
import { Name, Text } from "../../ui/Text";
import { Changes } from "../../ui/Changes";
import { changes } from "../../ui/changes";
import type { RunLog } from "../../live/runLog";
import { columnsOf, documentOf, isTaken, roomOf, type Column } from "../columns";
import { recordedIn, textOf } from "../events";
import { asks, type Execution, type Problem } from "../model";
import { nearest, ruleAt } from "../pointer";
import { stoppedAt } from "../rungs";
import { useSchema, type LadderContext } from "./context";
import { modelOf } from "./LadderHead";

type Props = { log: RunLog; execution: Execution; column: Column; context: LadderContext };

/** The details of a selected column. */
export function Detail({ log, execution, column, context }: Props): ReactNode {
  const { call, envelope } = column;
  const stop = envelope && stoppedAt(envelope.gates);
  const said = envelope?.outcome === "accepted" ? undefined : textOf(call, execution.nodeId, log.events);
  return (
    <div className="ladder-detail">
      <CallNotes execution={execution} column={column} context={context} />
      {stop && (
        <section aria-label={`Refused at ${stop.gate}`}>
          <h3>
            Gate {stop.gate}: {asks[stop.gate]}
          </h3>
          {stop.code && <Explanation code={stop.code} message={stop.reason} />}
          {(stop.refusedKind || stop.acceptedKinds) && <Kinds refused={stop.refusedKind} accepted={stop.acceptedKinds ?? []} />}
        </section>
      )}
      <Judged log={log} execution={execution} column={column} context={context} problems={stop?.problems ?? []} />
      <Since log={log} execution={execution} column={column} context={context} />
      {envelope && <Facts runId={log.runId} column={column} context={context} />}
      {said !== undefined && (
        <details className="said-text">
          <summary>Model output</summary>
          <p className="dim small">Streamed output with secrets removed. It was not recorded as an envelope.</p>
          <pre>
            <Text text={said} />
          </pre>
        </details>
      )}
    </div>
  );
}

/** Shows the changes to the previous attempt, if both documents are known. */
function Since({ log, execution, column, context }: Props): ReactNode {
  const given = (c: Column): Json | undefined => documentOf(c, execution.nodeId, log.events, c.envelope?.kind ?? context.askedKind);
  const now = given(column);
  const before = columnsOf(execution).findLast((c) => c.call.call < column.call.call && given(c) !== undefined);
  if (now === undefined || !before) return null;
  const list = changes(given(before), now);
  return (
    <section aria-label="What changed">
      <h3>What changed since attempt {before.call.attempt}</h3>
      <Changes list={list} names={[`attempt ${before.call.attempt}`, `attempt ${column.call.attempt}`]} same="Nothing: the model returned the same document." />
    </section>
  );
}

/** Notes on the call: truncation, refusal, recovery and retry. */
function CallNotes({ execution, column: { call }, context }: Omit<Props, "log">): ReactNode {
  const room = roomOf(call, context.room, context.multiplier, execution.calls);
  return (
    <>
      {call.because && call.cause === "retry" && (
        <p className="ladder-note">
          <strong>Retried</strong> because of <Name text={call.because.words} />.{" "}
          {call.because.reason === "truncation" ? (
            <>No correction was added, because a truncated answer needs more tokens. Its limit is up to {room.toLocaleString("en")} tokens.</>
          ) : call.because.detail ? (
            <>
              Correction sent to the model: <q><Name text={call.because.detail} /></q>
            </>
          ) : null}
        </p>
      )}
      {call.cause === "prose-fallback" && (
        <p className="ladder-note">
          <strong>One extra call</strong> converts the prose of the last attempt to the schema. The prose is sent as untrusted content.
        </p>
      )}
      {call.truncated && (
        <section aria-label="Truncated">
          <h3>Truncated{call.truncated.outputTokens === undefined ? "" : ` after ${call.truncated.outputTokens} tokens`}</h3>
          <p>
            The model stopped for <code><Name text={String(call.truncated.stopReason)} /></code>; its limit was {room.toLocaleString("en")} tokens.{" "}
            {call.truncated.partial ? "Part of the answer was readable but not used." : "The answer was not used."}
          </p>
          {execution.exhaustedAfter && execution.error && call === execution.calls.at(-1) && <Explanation code={execution.error.code} message={execution.error.message} />}
        </section>
      )}
      {call.refusal && (
        <section aria-label="Declined">
          <h3>The model declined</h3>
          <Explanation code="envelope_refusal" message="One attempt, not retried." />
          <dl className="envelope-facts">
            {call.refusal.category && (
              <div>
                <dt>Category</dt>
                <dd>
                  <code><Name text={call.refusal.category} /></code>
                </dd>
              </div>
            )}
            <div>
              <dt>Refusal text</dt>
              <dd>{call.refusal.text === undefined ? <em>withheld by policy</em> : <Text text={call.refusal.text} quoted />}</dd>
            </div>
          </dl>
        </section>
      )}
      {call.failure?.reason === "parse-error" && (
        <section aria-label="No document">
          <h3>No JSON document to check: <Name text={call.failure.words ?? "no JSON document"} /></h3>
          {call.failure.detail && <p><Name text={call.failure.detail} /></p>}
          {execution.exhaustedAfter && execution.error && call === execution.calls.at(-1) ? (
            <Explanation code={execution.error.code} message={execution.error.message} />
          ) : (
            <p>The answer was complete but contained no whole document, so no gate was reached.</p>
          )}
        </section>
      )}
      {call.recovery && (
        <p className="ladder-note">
          <strong><Name text={call.recovery.words ?? "extracted from surrounding text"} /></strong> (<Name text={call.recovery.path} />
          {call.recovery.byteOffset === undefined ? "" : `, JSON begins at byte ${call.recovery.byteOffset}`}): no attempt was used.
        </p>
      )}
    </>
  );
}

function Kinds({ refused, accepted }: { refused: string | undefined; accepted: string[] }): ReactNode {
  return (
    <dl className="envelope-facts kinds">
      {refused && (
        <div>
          <dt>Refused</dt>
          <dd>
            <code className="chip bad"><Name text={refused} /></code>
          </dd>
        </div>
      )}
      <div>
        <dt>Accepted</dt>
        <dd>
          {accepted.map((kind) => (
            <code key={kind} className="chip">
              <Name text={kind} />
            </code>
          ))}
        </dd>
      </div>
    </dl>
  );
}

const placeOf = (p: Problem): string => `${p.instancePointer ?? ""} ${p.schemaPointer ?? p.message}`.trim();

function linkTo(p: Problem): string {
  const url = new URL(location.href);
  url.searchParams.set("at", placeOf(p));
  return url.href;
}

/** Payload and schema side by side, with the invalid positions highlighted. */
function Judged({ log, execution, column, context, problems }: Props & { problems: Problem[] }): ReactNode {
  const { envelope } = column;
  const [search, setSearch] = useSearchParams();
  const recorded = useIsRecorded();
  // The selected problem is part of the URL, so that a copied link shows the same.
  const chosen = Math.max(0, problems.findIndex((p) => placeOf(p) === search.get("at")));
  const choose = (p: Problem): void => setSearch({ at: placeOf(p) }, { replace: true });
  const taken = isTaken(column);
  const form = envelope?.form ?? "envelope";
  const kind = envelope?.kind ?? (taken ? undefined : context.askedKind);
  const of = useSchema(kind, context.config, form);
  // Problems of other gates have no position in the schema.
  const schema = taken || problems.some((p) => p.schemaPointer !== undefined) ? of : undefined;
  const payload = documentOf(column, execution.nodeId, log.events, kind);
  const problem = problems[chosen];
  const place = problem?.instancePointer === undefined ? undefined : nearest(payload, problem.instancePointer);
  const rule = problem?.schemaPointer === undefined ? undefined : ruleAt(schema, problem.schemaPointer, problem.message);
  const { rendering, label } = recordedIn(log.events[envelope?.events[0]?.sequence ?? -1]);
  if (payload === undefined && problems.length === 0) return null;
  return (
    <>
      {problems.length > 0 && (
        <section aria-label="Problems">
          <h3>{problems.length === 1 ? "1 problem" : `${problems.length} problems`}</h3>
          <ol className="problems">
            {problems.map((p, i) => (
              <li key={`${p.schemaPointer ?? ""} ${p.message}`}>
                <button type="button" aria-pressed={i === chosen} onClick={() => choose(p)}>
                  {p.instancePointer !== undefined && <code className="place"><Name text={p.instancePointer || "/"} /></code>} <Name text={p.message} />
                </button>
                {!recorded && <CopyButton text={() => linkTo(p)} what={`the link to ${p.instancePointer || "this"}`} icon="link" />}
                {p.schemaPointer && (
                  <span className="dim small rule-at">
                    rule <code><Name text={p.schemaPointer} /></code>
                    <CopyButton text={p.schemaPointer} what="the pointer into the schema" />
                  </span>
                )}
              </li>
            ))}
          </ol>
        </section>
      )}
      <div className={schema === undefined ? "judged alone-payload" : "judged"}>
        <section aria-label="Payload">
          <h3>
            {taken ? "Payload" : "Model output"}
            {kind && <span className="dim"> · <Name text={kind} /></span>}
            {taken && label && <span> · <Name text={label} /></span>}
          </h3>
          {payload === undefined ? (
            <p className="dim">Rejected documents are not recorded, and this node does not stream its answers. Only the problems are known.</p>
          ) : taken ? (
            <Payload kind={envelope?.kind} payload={payload} rendering={rendering} />
          ) : (
            <JsonView
              value={payload}
              open={6}
              key={problem?.instancePointer ?? ""}
              {...(place?.exact ? { mark: place.pointer } : {})}
              {...(place && !place.exact ? { after: missingAt(place.pointer, problem?.instancePointer) } : {})}
            />
          )}
        </section>
        {schema !== undefined && (
          <section aria-label="Schema">
            <h3>
              Schema<span className="dim"> · {form === "value" ? "the node's outputSchema" : `version ${String(envelope?.version ?? context.versions[kind ?? ""] ?? "as served")}`}</span>
            </h3>
            {taken ? (
              <details className="schema-fold">
                <summary>Show the schema</summary>
                <JsonView value={schema} open={4} />
              </details>
            ) : (
              <JsonView value={schema} open={rule === undefined ? 2 : 1} {...(rule === undefined ? {} : { mark: rule })} key={rule ?? ""} />
            )}
          </section>
        )}
      </div>
    </>
  );
}

/** Marks a missing member in the payload. */
const missingAt = (place: string, wanted: string | undefined) => (pointer: string) =>
  pointer === place ? <span className="missing">{wanted?.split("/").at(-1)} is missing</span> : null;

function Facts({ runId, column: { call, envelope }, context }: { runId: string; column: Column; context: LadderContext }): ReactNode {
  if (!envelope) return null;
  const advertised = envelope.kind === undefined ? undefined : context.versions[envelope.kind];
  return (
    <section aria-label="Envelope">
      <h3>{envelope.form === "value" ? "Value" : "Envelope"}</h3>
      <dl className="envelope-facts">
        {envelope.envelopeId && (
          <div>
            <dt>Envelope</dt>
            <dd>
              <Id id={envelope.envelopeId} what="the envelope's id" />
            </dd>
          </div>
        )}
        {envelope.kind && (
          <div>
            <dt>Kind</dt>
            <dd>
              <code><Name text={envelope.kind} /></code>
              {envelope.version !== undefined && <span className="dim"> judged by version <Name text={envelope.version} /></span>}
              {advertised !== undefined && String(advertised) !== envelope.version && <span className="dim">, advertised {String(advertised)}</span>}
            </dd>
          </div>
        )}
        {envelope.correlationId && (
          <div>
            <dt>Correlation</dt>
            <dd>
              <Id id={envelope.correlationId} what="the correlation id" />
            </dd>
          </div>
        )}
        {envelope.contentTrust && (
          <div>
            <dt>Content</dt>
            <dd>{envelope.contentTrust === "untrusted" ? <span className="status ask">untrusted</span> : "trusted"}</dd>
          </div>
        )}
        {call.usage && (
          <div>
            <dt>Model</dt>
            <dd>
              <Name text={modelOf(call.usage)} />
            </dd>
          </div>
        )}
        <div>
          <dt>Recorded</dt>
          <dd>
            {envelope.events.length === 0 && <span className="dim">no events</span>}
            {envelope.events.map((e) => (
              <Link key={e.eventId} href={`/runs/${encodeURIComponent(runId)}?e=${e.sequence}`} className="recorded-link" title={escapeHidden(e.eventId)}>
                #{e.sequence} <Name text={e.type} />
              </Link>
            ))}
          </dd>
        </div>
      </dl>
    </section>
  );
}
