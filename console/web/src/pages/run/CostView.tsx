import type { ReactNode } from "react";
import type { RunLog } from "../../live/runLog";
import { callsOf, count, money, sumOf, type Call } from "./usage";
import { Name } from "../../ui/Text";

/** Usage of the run's model calls. Unknown values never count as zero. */
export function CostView({ log, onSelect }: { log: RunLog; onSelect: (seq: number) => void }): ReactNode {
  const calls = callsOf(log.events);
  if (calls.length === 0) return <p className="empty">No model was called{log.ended ? "." : " yet."}</p>;
  const sum = sumOf(calls);
  const again = sumOf(calls.filter((c) => c.again));
  const currency = calls.find((c) => c.currency)?.currency ?? "USD";
  const priced = Boolean(sum.cost) && again.cost !== undefined;
  const share = priced ? (again.cost ?? 0) / (sum.cost ?? 1) : Number(again.input + again.output) / Math.max(1, Number(sum.input + sum.output));
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
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <CallRow key={call.seq} call={call} onSelect={onSelect} />
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row" colSpan={2}>
                {sum.calls} {sum.calls === 1 ? "call" : "calls"}
              </th>
              <td className="num">{sum.unknown === sum.calls ? "–" : count(sum.input)}</td>
              <td className="num">{count(sum.cached)}</td>
              <td className="num">{sum.unknown === sum.calls ? "–" : count(sum.output)}</td>
              <td className="num">{money(sum.cost, currency)}</td>
            </tr>
          </tfoot>
        </table>
      </div>
    </section>
  );
}

function CallRow({ call, onSelect }: { call: Call; onSelect: (seq: number) => void }): ReactNode {
  return (
    <tr>
      <td>
        <button type="button" className="quiet link" onClick={() => onSelect(call.seq)}>
          <Name text={call.nodeId || "run"} />
        </button>
        {call.again && <span className="dim small"> retry</span>}
      </td>
      <td>
        <Name text={[call.provider, call.model].filter(Boolean).join(" · ") || "–"} />
      </td>
      <td className="num">{count(call.input)}</td>
      <td className="num">{count(call.cached)}</td>
      <td className="num">{count(call.output)}</td>
      <td className="num">{money(call.cost, call.currency)}</td>
    </tr>
  );
}
