import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Column } from "../columns";
import type { Call } from "../model";
import { Name } from "../../ui/Text";

const causes: Record<Call["cause"], string> = {
  first: "",
  retry: "retry",
  "prose-fallback": "schema conversion",
  "next-turn": "next turn",
  "after-answer": "after the answer",
  "handed-in": "external",
};

export const modelOf = (usage: NonNullable<Call["usage"]>): string => `${usage.provider ?? ""}·${usage.model ?? ""}`;

type Props = { column: Column; columns: Column[]; path: string; chosen: boolean; attempts: number | undefined };

/** The header of a column: attempt, cause, model and tokens. */
export function LadderHead({ column, columns, path, chosen, attempts }: Props): ReactNode {
  const { call, envelope } = column;
  const first = columns.find((c) => c.call === call) === column;
  const of = call.cause === "prose-fallback" ? "Extra call" : call.cause === "handed-in" ? "Envelope" : `Attempt ${call.attempt}${attempts && call.attempt <= attempts ? ` of ${attempts}` : ""}`;
  return (
    <Link href={path} className="ladder-head" aria-current={chosen ? "true" : undefined} replace>
      <span className="ladder-attempt">
        {of}
        {envelope?.size !== undefined && <span className="dim"> · {(envelope.index ?? 0) + 1} of {envelope.size}</span>}
      </span>
      {first && call.because && <span className="ladder-why">{causes[call.cause]}: <Name text={call.because.words} /></span>}
      {first && !call.because && causes[call.cause] && <span className="ladder-why">{causes[call.cause]}</span>}
      {first && call.usage && (
        <span className="ladder-model">
          <Name text={modelOf(call.usage)} /> <span className="nowrap">{`${call.usage.inputTokens ?? "–"} → ${call.usage.outputTokens ?? "–"} tokens`}</span>
        </span>
      )}
      {envelope?.kind && <span className="ladder-kind"><Name text={envelope.kind} /></span>}
    </Link>
  );
}
