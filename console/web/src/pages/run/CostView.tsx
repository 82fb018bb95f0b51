import type { ReactNode } from "react";
import type { Call, RunView } from "../../ladder/model";
import { count, money } from "./usage";
import { Name } from "../../ui/Text";
import { duration } from "../../ui/time";

/** Usage of the run's model calls. Unknown values never count as zero. */
export function CostView({ view: { cost, timeline, answers }, onSelect }: { view: RunView; onSelect: (seq: number) => void }): ReactNode {
  const { calls, total: sum, retries: again } = cost;
  if (calls.length === 0) return <p className="empty">No model was called{timeline.run.to === undefined ? " yet." : "."}</p>;
  const priced = Boolean(Number(sum.cost)) && again.cost !== undefined;
  const tokens = (s: typeof sum): number => Number(s.inputTokens ?? 0) + Number(s.outputTokens ?? 0);
  const share = priced ? Number(again.cost) / Number(sum.cost) : tokens(again) / Math.max(1, tokens(sum));
  return (
    <section aria-label="Tokens and cost">
      <p className="dim">
        Cost is an estimate, based on the prices in the host&apos;s model catalogue. The provider&apos;s bill may differ.
        {again.calls > 0 && ` ${again.calls} of ${sum.calls} calls were retries: ${Math.round(share * 100)} % of the ${priced ? "cost" : "tokens"}.`}
        {sum.unknown > 0 && ` ${sum.unknown} ${sum.unknown === 1 ? "call" : "calls"} without reported usage: shown as “–” and not included in sums.`}
      </p>
      <div className="scroll" tabIndex={0} role="region" aria-label="Model calls">
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Provider and model</th>
              <th scope="col" className="num">
                Tokens in
              </th>
              <th scope="col" className="num">
                Cached
              </th>
              <th scope="col" className="num">
                Tokens out
              </th>
              <th scope="col" className="num">
                Cost (estimate)
              </th>
              <th scope="col" className="num">
                First text
              </th>
              <th scope="col" className="num">
                Took
              </th>
              <th scope="col" className="num">
                Tokens/s
              </th>
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <CallRow key={call.sequence} call={call} timed={answers.flatMap((x) => (x.nodeId === call.nodeId ? x.calls : [])).find((c) => c.from <= call.sequence && call.sequence <= c.to)} onSelect={onSelect} />
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row" colSpan={2}>
                {sum.calls} {sum.calls === 1 ? "call" : "calls"}
              </th>
              <td className="num">{count(sum.inputTokens)}</td>
              <td className="num">{count(sum.cachedTokens)}</td>
              <Output tokens={sum.outputTokens} thoughts={sum.reasoningTokens} />
              <td className="num">{money(sum.cost, sum.currency)}</td>
              <td className="num">–</td>
              <td className="num">{duration(answers.reduce((all, x) => all + x.calls.reduce((n, c) => n + Number(c.tookMs ?? 0), 0), 0))}</td>
              <td className="num">–</td>
            </tr>
          </tfoot>
        </table>
      </div>
    </section>
  );
}

/** Output tokens, with the part that the model used to think, if the provider reports it. */
function Output({ tokens, thoughts }: { tokens: number | undefined; thoughts: number | undefined }): ReactNode {
  return (
    <td className="num">
      {count(tokens)}
      {thoughts !== undefined && <span className="dim small"> {count(thoughts)} thinking</span>}
    </td>
  );
}

const took = (ms: number | undefined): string => (ms === undefined ? "–" : duration(ms));

type RowProps = { call: RunView["cost"]["calls"][number]; timed: Call | undefined; onSelect: (seq: number) => void };

function CallRow({ call, timed, onSelect }: RowProps): ReactNode {
  const perSecond = timed?.tokensPerSecond;
  return (
    <tr>
      <td>
        <button type="button" className="quiet link" onClick={() => onSelect(call.sequence)}>
          <Name text={call.nodeId || "run"} />
        </button>
        {call.retry && <span className="dim small"> retry</span>}
      </td>
      <td>
        <Name text={[call.provider, call.model].filter(Boolean).join(" · ") || "–"} />
      </td>
      <td className="num">{count(call.inputTokens)}</td>
      <td className="num">{count(call.cachedTokens)}</td>
      <Output tokens={call.outputTokens} thoughts={call.reasoningTokens} />
      <td className="num nowrap">{money(call.cost, call.currency)}</td>
      <td className="num nowrap">{took(timed?.firstMs)}</td>
      <td className="num nowrap">{took(timed?.tookMs)}</td>
      <td className="num">{perSecond === undefined ? "–" : Number(perSecond).toFixed(perSecond < 10 ? 1 : 0)}</td>
    </tr>
  );
}
