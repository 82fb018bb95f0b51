import type { ReactNode } from "react";
import { Link } from "wouter";
import "./ladder.css";
import { columnsOf, type Column } from "../columns";
import { asks, gates, type Call, type Execution, type Rung } from "../model";
import { lookup } from "../../api/lookup";
import { Icon, type IconName } from "../../ui/Icon";
import { LadderHead } from "./LadderHead";
import { escapeHidden } from "../../ui/escape";
import { Code } from "../../ui/Code";
import { Name } from "../../ui/Text";

type Props = {
  runId: string;
  execution: Execution;
  /** Key of the selected column. */
  chosen: string | undefined;
  /** Maximum number of attempts. */
  attempts: number | undefined;
  /** Names the ladder among others of the same node on a page. */
  about?: string;
};

/** Returns the path of an envelope, or of an attempt without one. */
export const envelopePath = (runId: string, key: string): string => `/runs/${encodeURIComponent(runId)}/envelopes/${encodeURIComponent(key)}`;

/** The model calls of one node execution, with the eight gates of each attempt. */
export function Ladder({ runId, execution, chosen, attempts, about = "" }: Props): ReactNode {
  const columns = columnsOf(execution);
  if (columns.length === 0) return null;
  const open = execution.result === "open";
  return (
    <>
      {columns.length > 1 && (
        <nav className="ladder-pick" aria-label={`Attempts${about}`}>
          <ul>
            {columns.map((c) => (
              <li key={c.key}>
                <Link href={envelopePath(runId, c.key)} aria-current={c.key === chosen ? "true" : undefined} replace>
                  <End column={c} named />
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      )}
      {/* A scrollable region must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <section className="ladder-scroll" aria-label={`Ladder of ${escapeHidden(execution.nodeId)}${about}`} tabIndex={0}>
        <table className={columns.length <= 3 ? "ladder wide" : "ladder"}>
          <caption className="unseen">Gates from shape to routing, one column for each attempt and document</caption>
          <thead>
            <tr>
              <th scope="col" className="gate-col">
                <span className="unseen">Gate</span>
              </th>
              {columns.map((c) => (
                <th key={c.key} scope="col" className={c.key === chosen ? "chosen" : undefined}>
                  <LadderHead column={c} columns={columns} path={envelopePath(runId, c.key)} chosen={c.key === chosen} attempts={attempts} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr className="ramp">
              <th scope="row">
                <span className="gate-name">answer</span>
              </th>
              {columns.map((c) => (
                <td key={c.key} className={c.key === chosen ? "chosen" : undefined}>
                  <Ramp column={c} open={open} />
                </td>
              ))}
            </tr>
            {gates.map((gate, i) => (
              <tr key={gate}>
                <th scope="row">
                  <span className="gate-number" aria-hidden="true">
                    {i + 1}
                  </span>
                  <span className="gate-name">{gate}</span>
                  {columns.length <= 3 && <span className="gate-asks">{asks[gate]}</span>}
                </th>
                {columns.map((c) => {
                  const rung = c.envelope?.gates[i] ?? { gate, state: "not-reached" as const };
                  return (
                    <td key={c.key} className={cellClass(rung, c.key === chosen)}>
                      <Cell rung={rung} />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">
                <span className="gate-name">outcome</span>
              </th>
              {columns.map((c) => (
                <td key={c.key} className={c.key === chosen ? "chosen" : undefined}>
                  <End column={c} />
                </td>
              ))}
            </tr>
          </tfoot>
        </table>
      </section>
    </>
  );
}

export const cellClass = (rung: Rung, chosen: boolean): string => `rung ${rung.state}${chosen ? " chosen" : ""}`;

const signs: Partial<Record<Rung["state"], IconName>> = { passed: "check", refused: "cross" };
const words: Record<Rung["state"], string> = { passed: "passed", refused: "refused", "not-reached": "not reached", "not-applicable": "no envelope" };

export function Cell({ rung }: { rung: Rung }): ReactNode {
  const sign = signs[rung.state];
  return (
    <span className="rung-cell">
      <span className="dot" aria-hidden="true">
        {sign && <Icon name={sign} />}
      </span>
      <span className="rung-text">
        <span className="rung-word">{words[rung.state]}</span>
        {rung.code && (
          <>
            {" "}
            <code><Code text={rung.code} /></code>
          </>
        )}
        {rung.note && <span className="rung-note"> <Name text={rung.note} /></span>}
      </span>
    </span>
  );
}

/** The state of the answer before the gates: complete, and with a document or not. */
function Ramp({ column: { call }, open }: { column: Column; open: boolean }): ReactNode {
  if (call.refusal) return <span className="ramp-text bad">the model declined</span>;
  if (call.truncated) {
    return (
      <span className="ramp-text bad">
        cut off{call.truncated.outputTokens === undefined ? "" : ` after ${call.truncated.outputTokens} tokens`}
      </span>
    );
  }
  if (call.failure?.reason === "parse-error") return <span className="ramp-text bad">complete, <Name text={call.failure.words ?? "no JSON document"} /></span>;
  if (call.recovery) return <span className="ramp-text">complete, <Name text={call.recovery.words ?? "extracted from surrounding text"} /></span>;
  if (call.cause === "handed-in") return <span className="ramp-text">submitted</span>;
  if (!call.usage) return <span className="ramp-text">{open ? "in progress" : "no answer"}</span>;
  return <span className="ramp-text">{call.envelopes.length > 0 ? "complete" : "complete, plain text"}</span>;
}

function End({ column: { call, envelope }, named }: { column: Column; named?: boolean }): ReactNode {
  const end = (envelope && lookup(ends, envelope.outcome)) ?? { word: call.end, tone: call.tone, icon: signOf(call) };
  return (
    <span className={`end ${end.tone}`}>
      {named && <span>{name(call, envelope?.index)} </span>}
      <Icon name={end.icon} /> <Name text={end.word} />
    </span>
  );
}

const ends: Record<string, { word: string; tone: Call["tone"]; icon: IconName }> = {
  accepted: { word: "accepted", tone: "good", icon: "check" },
  cached: { word: "cached outcome", tone: "note", icon: "link" },
  discarded: { word: "discarded", tone: "note", icon: "ban" },
};

function signOf(call: Call): IconName {
  if (call.refusal) return "ban";
  if (call.truncated) return "minus";
  if (call.failure) return "skip";
  return call.tone === "bad" ? "cross" : call.tone === "good" ? "check" : "dot";
}

const name = (call: Column["call"], index: number | undefined): string => `${call.attempt}${index === undefined ? "" : `.${index + 1}`}`;
