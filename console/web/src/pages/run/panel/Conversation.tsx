import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { isObject, stringifyJson, type Json } from "../../../api/json";
import { lookup } from "../../../api/lookup";
import type { RunSnapshot } from "../../../api/model";
import { columnsOf, decisive, documentOf, isTaken } from "../../../ladder/columns";
import { record, recordedIn, text, textOf } from "../../../ladder/events";
import type { Call, Execution } from "../../../ladder/model";
import { useLadderContext } from "../../../ladder/ui/context";
import { envelopePath, Ladder } from "../../../ladder/ui/Ladder";
import { Verdict } from "../../../ladder/ui/Verdict";
import type { RunLog } from "../../../live/runLog";
import { Payload } from "../../../media/Payload";
import { CopyButton } from "../../../ui/CopyButton";
import { JsonView } from "../../../ui/JsonView";
import { Name, Text } from "../../../ui/Text";
import { duration } from "../../../ui/time";
import { count, money } from "../usage";
import { addedTo, sentIn, type Message, type Sent } from "./sent";

type Props = { execution: Execution; log: RunLog; snapshot: RunSnapshot | undefined };

/** The model calls of a node as a conversation: what was sent, what came back, and the checks it passed. */
export function Conversation({ execution, log, snapshot }: Props): ReactNode {
  const context = useLadderContext(snapshot, execution.nodeId);
  const prompts = execution.calls.map((c) => sentIn(c.prompt === undefined ? undefined : log.events[c.prompt]));
  const columns = columnsOf(execution);
  const chosen = decisive(execution, columns);
  return (
    <section aria-label="Model" className="conversation">
      <Verdict story={execution} />
      {execution.choice && <p className="choice-why small"><Name text={execution.choice} /></p>}
      {execution.calls.length > 0 && !prompts.some((p) => p.sent) && <Unrecorded hash={prompts[0]?.hash} />}
      <ol className="turns">
        {execution.calls.map((call, i) => (
          <li key={call.call}>
            {execution.calls.length > 1 && <h3>{headingOf(call)}</h3>}
            <SentView sent={prompts[i]?.sent && addedTo(prompts.slice(0, i).findLast((p) => p.sent)?.sent, prompts[i].sent)} />
            {!prompts[i]?.sent && call.because?.detail && (
              <Bubble who="correction">
                <Name text={call.because.detail} />
              </Bubble>
            )}
            <Answer call={call} execution={execution} log={log} askedKind={context.askedKind} />
          </li>
        ))}
      </ol>
      {columns.some((c) => c.envelope !== undefined || c.call.failure) && (
        <>
          <h3>Checks</h3>
          <Ladder runId={log.runId} execution={execution} chosen={chosen?.key} attempts={context.attempts} />
          {chosen && (
            <p className="small">
              <Link href={envelopePath(log.runId, chosen.key)}>Open all checks: payload, schema, problems</Link>
            </p>
          )}
        </>
      )}
    </section>
  );
}

const causes: Record<Call["cause"], string> = {
  first: "Call",
  retry: "Retry",
  "prose-fallback": "Conversion to the schema",
  "next-turn": "Next turn",
  "after-answer": "After the answer",
  "handed-in": "Submitted",
};

function headingOf(call: Call): ReactNode {
  return (
    <>
      {causes[call.cause]} {call.call}
      {call.because && <span className="dim"> · <Name text={call.because.words} /></span>}
    </>
  );
}

function Unrecorded({ hash }: { hash: string | undefined }): ReactNode {
  return (
    <p className="dim small">
      {hash ? <>Only a hash of the messages is recorded (<code>{hash.slice(0, 19)}…</code>).</> : "The messages to the model are not recorded."} Start the host with{" "}
      <code>--prompt-observability full</code> to see them here.
    </p>
  );
}

function SentView({ sent }: { sent: Sent | undefined }): ReactNode {
  if (!sent) return null;
  return (
    <>
      {sent.system !== undefined && (
        <Bubble who="system" folded={sent.system.length > 600} copy={sent.system}>
          <Text text={sent.system} />
        </Bubble>
      )}
      {sent.messages.map((m, i) => (
        // Messages have no id, and never change.
        // oxlint-disable-next-line react/no-array-index-key
        <Bubble key={i} who={m.role} copy={typeof m.content === "string" ? m.content : stringifyJson(m.content, 2)}>
          <Content content={m.content} />
        </Bubble>
      ))}
      {sent.schema !== undefined && (
        <details className="bubble schema">
          <summary>Schema of the answer, as sent</summary>
          <JsonView value={sent.schema} open={2} />
        </details>
      )}
    </>
  );
}

const roles: { [role: string]: string } = { system: "System", user: "User", assistant: "Assistant", tool: "Tool", correction: "Correction" };

function Bubble({ who, folded, copy, children }: { who: string; folded?: boolean; copy?: string; children: ReactNode }): ReactNode {
  const known = lookup(roles, who);
  const name = known ?? who;
  const kind = known === undefined ? "user" : who;
  if (folded) {
    return (
      <details className={`bubble ${kind}`}>
        <summary><Name text={name} /></summary>
        <div className="bubble-text">{children}</div>
      </details>
    );
  }
  return (
    <div className={`bubble ${kind}`}>
      <div className="bubble-role">
        <Name text={name} />
        {copy !== undefined && <CopyButton text={copy} what={`the message: ${name}`} />}
      </div>
      <div className="bubble-text">{children}</div>
    </div>
  );
}

function Content({ content }: { content: Message["content"] }): ReactNode {
  if (typeof content === "string") return <Text text={content} />;
  if (!Array.isArray(content)) return <JsonView value={content} open={2} />;
  return content.map((block, i) =>
    // oxlint-disable-next-line react/no-array-index-key
    isObject(block) && typeof block.text === "string" ? <Text key={i} text={block.text} /> : <JsonView key={i} value={block} open={2} />,
  );
}

/** The answer of a call: parsed and as text, while it arrives too. */
function Answer({ call, execution, log, askedKind }: { call: Call; execution: Execution; log: RunLog; askedKind: string | undefined }): ReactNode {
  const { nodeId } = execution;
  const said = textOf(call, nodeId, log.events) ?? plainText(call, execution, log);
  const column = columnsOf(execution).find((c) => c.call === call);
  const partial = call.partial === undefined ? undefined : (record(log.events[call.partial]?.payload).payload as Json | undefined);
  const parsed = partial ?? (column?.envelope ? documentOf(column, nodeId, log.events, column.envelope.kind ?? askedKind) : undefined);
  const [raw, setRaw] = useState(false);
  const both = said !== undefined && parsed !== undefined;
  const arriving = call.usage === undefined && execution.result === "open" && call === execution.calls.at(-1);
  return (
    <div className="bubble answer">
      <div className="bubble-role">
        {arriving ? "Answer, arriving" : "Answer"} <span className={`answer-end is-${call.tone}`}><Name text={call.end} /></span>
        {both && (
          <span className="choices" role="group" aria-label="Form of the answer">
            {[false, true].map((form) => (
              <button key={String(form)} type="button" className="choice" aria-pressed={raw === form} onClick={() => setRaw(form)}>
                {form ? "as text" : "parsed"}
              </button>
            ))}
          </span>
        )}
      </div>
      {call.thoughts?.map((seq) => (
        <details key={seq} className="thoughts">
          <summary>Reasoning</summary>
          <Text text={text(log.events[seq]?.payload.reasoning) ?? ""} />
        </details>
      ))}
      <div className="bubble-text">
        {parsed !== undefined && !(both && raw) ? (
          partial === undefined && column && isTaken(column) ? (
            <Payload kind={column.envelope?.kind} payload={parsed} rendering={recordedIn(log.events[column.envelope?.events[0]?.sequence ?? -1]).rendering} />
          ) : (
            <JsonView value={parsed} open={6} />
          )
        ) : said !== undefined ? (
          <pre className="said"><Text text={said} /></pre>
        ) : call.refusal?.text !== undefined ? (
          <Text text={call.refusal.text} quoted />
        ) : (
          <span className="dim">{arriving ? "Nothing has arrived yet." : "The text was not recorded: the node does not stream, and the answer was not accepted."}</span>
        )}
      </div>
      <CallFacts call={call} />
    </div>
  );
}

/** The text of an answer that is the node's output. */
function plainText(call: Call, execution: Execution, log: RunLog): string | undefined {
  if (execution.result !== "completed" || call !== execution.calls.at(-1)) return undefined;
  const end = log.events[execution.to];
  return end?.type === "node.completed" ? text(record(end.payload.outputs).output) : undefined;
}

function CallFacts({ call }: { call: Call }): ReactNode {
  const u = call.usage;
  const facts: [string, string][] = [];
  if (u) facts.push(["Model", [u.provider, u.model].filter(Boolean).join(" · ") || "–"]);
  if (u) facts.push(["Tokens", `${count(u.inputTokens)} in, ${count(u.outputTokens)} out`]);
  if (u?.cachedTokens !== undefined) facts.push(["Cached", count(u.cachedTokens)]);
  if (u?.reasoningTokens !== undefined) facts.push(["Reasoning", count(u.reasoningTokens)]);
  if (u) facts.push(["Cost", money(u.cost, u.currency)]);
  if (call.firstMs !== undefined) facts.push(["Time to first text", duration(call.firstMs)]);
  if (call.tookMs !== undefined) facts.push(["Took", duration(call.tookMs)]);
  if (call.tokensPerSecond !== undefined) facts.push(["Tokens/s", Number(call.tokensPerSecond).toFixed(call.tokensPerSecond < 10 ? 1 : 0)]);
  if (facts.length === 0) return null;
  return (
    <dl className="call-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd><Name text={value} /></dd>
        </div>
      ))}
    </dl>
  );
}
